"""Adding a format of vectors takes one new source file and changes no other file."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import neural_brane

ROOT = Path(__file__).parents[2]
TOY = '''"""Vectors in Python's notation."""

from ast import literal_eval
from pathlib import Path

import numpy as np

from neural_brane.files.vectors.table import Content, VectorFormat, VectorTable, parse_ids


def write_toy(content: Content, path: Path) -> None:
    """Write a line per node."""
    with open(path, "w", encoding="utf-8") as file:
        for ids, block in content.with_ids():
            file.writelines(f"{(str(node), row.astype(float).tolist())}\\n" for node, row in zip(ids, block))


def read_toy(path: Path) -> VectorTable:
    """Read a line per node."""
    rows = [literal_eval(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return VectorTable(np.array([row for _, row in rows], np.float32), parse_ids([node for node, _ in rows]), {})


FORMAT = VectorFormat(".toy", "lines that Python prints", read_toy, write_toy)
'''


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return a function that runs Python with a copy of the package that has one more file."""
    folder = tmp_path_factory.mktemp("copy")
    package = folder / "neural_brane"
    shutil.copytree(Path(neural_brane.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "files" / "vectors" / "toy.py").write_text(TOY, encoding="utf-8")

    def run(*arguments):
        environment = os.environ | {"PYTHONPATH": str(folder), "COLUMNS": "200", "NO_COLOR": "1"}
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)

    return run


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["-m", "neural_brane", "formats"], "lines that Python prints"),
        (["-m", "neural_brane", "embed", "stdlib", "-o", "v.unknown"], ".toy"),
        (["scripts/formats_table.py", "--print"], "| `.toy` | lines that Python prints |"),
    ],
    ids=["the list of formats", "an error", "the table of the documentation"],
)
def test_a_new_format_is_listed(run, arguments, shown):
    result = run(*arguments)
    assert shown in result.stdout + result.stderr


def test_a_new_format_is_tried_with_the_others(run, tmp_path):
    tests = ["tests/files/test_vectors.py", "tests/files/test_vector_round_trips.py", "tests/cli/test_convert.py"]
    result = run(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", ".toy", f"--basetemp={tmp_path / 'tests'}", *tests
    )
    assert result.returncode == 0, result.stdout
    assert int(result.stdout.rpartition(" passed")[0].split()[-1]) >= 7
