"""Fixtures of the tests of files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.errors import GraphError
from neural_brane.files.graphs.formats import read_graph

Files = dict[str, str | bytes]


@pytest.fixture
def write(tmp_path) -> Callable[[str, str], Path]:
    """Return a function that writes a text file and returns its path."""

    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def read_malformed(tmp_path) -> Callable[[Files], str]:
    """Return a function that writes files, reads the first as a graph, and returns the error without the folder.

    It also checks that the command line prints this error on one line, without a traceback.
    """

    def read(files: Files) -> str:
        for name, content in files.items():
            (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        graph = tmp_path / next(iter(files))
        others = {
            role: tmp_path / name for role, name in (("attributes", "a.txt"), ("labels", "l.txt")) if name in files
        }
        with pytest.raises(GraphError) as caught:
            read_graph(graph, **others)
        options = [word for role, path in others.items() for word in (f"--{role}", str(path))]
        result = CliRunner().invoke(app, ["embed", str(graph), "-o", str(tmp_path / "vectors.npz"), *options])
        assert (result.exit_code, result.stderr) == (2, f"error: {caught.value}\n")
        return str(caught.value).replace(f"{tmp_path}/", "")

    return read


@pytest.fixture(scope="session")
def awkward() -> Callable[[int], np.ndarray]:
    """Return a function that makes vectors of four floats of all sizes; a careless text format would lose digits."""

    def make(nodes: int) -> np.ndarray:
        rng = np.random.default_rng(0)
        vectors = (rng.normal(size=(nodes, 4)) * 10.0 ** rng.integers(-30, 30, (nodes, 4))).astype(np.float32)
        vectors[0] = [0.1, 1 / 3, np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal]
        return vectors

    return make
