"""The wheel and the source distribution: built, installed where nothing else is, and used from another folder."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ELSEWHERE = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "NEURAL_BRANE_DATA")}

pytestmark = pytest.mark.slow


def run(*command, folder):
    """Run a command in a folder, without the source on the path; returns how it ended."""
    return subprocess.run(list(map(str, command)), cwd=folder, env=ELSEWHERE, capture_output=True, text=True)


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """The folder of the wheel and the source distribution, as 'make dist' builds them."""
    folder = tmp_path_factory.mktemp("dist")
    built = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, folder=ROOT)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_the_wheel_has_the_package_with_its_data_and_nothing_else(distributions):
    (wheel,) = distributions.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"neural_brane"}
    for path in (ROOT / "src" / "neural_brane").rglob("*"):
        if path.is_file() and path.suffix not in (".pyc", ".nbi", ".nbc"):  # what Python and Numba compile
            assert str(path.relative_to(ROOT / "src")) in names, path.name


def test_the_source_distribution_has_what_tests_and_the_site_need_and_no_kept_trainings(distributions):
    (archive,) = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("this is not a checkout, so what belongs to it cannot be listed")
    assert not {name for name in tracked.stdout.splitlines() if (ROOT / name).is_file()} - names
    assert not {name for name in names if "/trainings/" in name and name.startswith(("docs/", "benchmarks/"))}


@pytest.fixture(scope="module")
def installed(distributions, tmp_path_factory):
    """The folder of commands of a fresh environment that holds the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("fresh")
    reached = run(sys.executable, "-m", "pip", "download", "--no-deps", "--dest", folder, "typer", folder=folder)
    if reached.returncode:
        pytest.skip(f"no package index is reached: {reached.stderr.splitlines()[-1:]}")
    venv.create(folder / "venv")
    commands = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    (wheel,) = distributions.glob("*.whl")
    install = ["-m", "pip", "--python", commands / "python", "install", "--quiet", wheel]
    result = run(sys.executable, *install, folder=folder)
    assert result.returncode == 0, result.stderr
    return commands


def test_the_installed_demo_runs_without_torch(installed, tmp_path):
    asked = "import importlib.util as u, neural_brane; print(u.find_spec('torch'), neural_brane.__file__)"
    where = run(installed / "python", "-c", asked, folder=tmp_path).stdout
    assert where.startswith("None ")
    assert str(installed.parent) in where
    result = run(installed / "brane", "demo", "--output", tmp_path / "out", folder=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"stdlib.npz", "stdlib.png", "map.html"}


def test_the_installed_package_reproduces_the_paper_without_torch(installed, tmp_path):
    order = ("--quick", "--runs", "1", "--output", tmp_path / "out")
    result = run(installed / "brane", "reproduce", *order, folder=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "left out: graph2gauss, graphsage;" in result.stderr
    assert "pip install 'neural-brane[torch]'" in result.stderr
    assert (tmp_path / "out" / "report.html").stat().st_size > 0
