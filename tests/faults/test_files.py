"""Files of vectors and graphs are refused if they have one flipped bit, lack their end or cannot be opened."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane import load_model, read
from neural_brane.cli.app import app
from neural_brane.embedding import Embedding
from neural_brane.errors import BraneError, printable
from neural_brane.files.graphs.formats import read_graph, write_graph
from neural_brane.files.npz import COMMENT
from neural_brane.search.index import load_index

FLIPS, CUTS = 1000, 300


def vectors_of(path: Path) -> tuple[Any, ...]:
    """Return everything that a file of vectors contains, for comparison."""
    read = Embedding.load(path)
    made_from = None if read.made_from is None else read.made_from.tolist()
    return read.vectors.shape, read.vectors.tobytes(), read.ids.tolist(), read.provenance, made_from


def digest_of(path: Path) -> str:
    return read_graph(path).digest()


def write_vectors(path: Path) -> None:
    rng = np.random.default_rng(0)
    ids = [f"módulo {row}" for row in range(12)]
    table = rng.normal(size=(12, 4)).astype(np.float32)
    Embedding(table, ids, {"method": "attributes"}, np.array(["known", "links", "nothing"] * 4)).save(path)


@pytest.fixture(
    params=[
        "vectors.npz",
        "vectors.parquet",
        "vectors.columns.parquet",
        "vectors.safetensors",
        "vectors.h5ad",
        "graph.npz",
        "compressed.npz",
    ]
)
def whole(request, small_graph, tmp_path) -> tuple[Path, Callable[[Path], Any]]:
    """Return an undamaged file and the function that reads it."""
    path = tmp_path / request.param
    if path.name.startswith("vectors"):
        write_vectors(path)
        return path, vectors_of
    write_graph(small_graph, path, compress=path.stem == "compressed")
    return path, digest_of


def outcome(read: Callable[[Path], Any], path: Path) -> Any:
    """Return what is read from a file, or None if one of our errors refuses it; any other error fails the test."""
    try:
        return read(path)
    except BraneError:
        return None


def test_no_flipped_bit_gives_other_data(whole, tmp_path):
    path, read = whole
    expected, content = read(path), path.read_bytes()
    damaged = tmp_path / f"damaged{path.suffix}"
    refused = 0
    for bit in np.random.default_rng(1).integers(0, 8 * len(content), FLIPS).tolist():
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        damaged.write_bytes(changed)
        found = outcome(read, damaged)
        assert found is None or found == expected, f"bit {bit} of {len(content)} bytes gave other data"
        refused += found is None
    assert refused > FLIPS / 3, "the reader refuses so few files that it cannot be checking them"


def test_no_truncated_file_is_read(whole, tmp_path):
    path, read = whole
    content = path.read_bytes()
    damaged = tmp_path / f"damaged{path.suffix}"
    for size in np.random.default_rng(2).integers(0, len(content), CUTS).tolist():
        damaged.write_bytes(content[:size])
        assert outcome(read, damaged) is None, f"{size} of {len(content)} bytes were read"


def test_files_without_checksums_are_read(small_graph, tmp_path):
    np.savez(tmp_path / "old.npz", vectors=np.eye(2, dtype=np.float32), ids=np.array(["a", "b"]))
    assert Embedding.load(tmp_path / "old.npz")["b"].tolist() == [0, 1]
    write_graph(small_graph, tmp_path / "new.npz")
    with np.load(tmp_path / "new.npz", allow_pickle=False) as archive:
        np.savez(tmp_path / "graph.npz", **{name: archive[name] for name in archive if name != "checksums"})
    assert read_graph(tmp_path / "graph.npz").digest() == small_graph.digest()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.update(vectors=np.ones((2, 2))), r"v\.npz: .*array 'vectors'.*checksum"),
        (lambda arrays: arrays.update(more=np.ones(2)), r"v\.npz: .*checksums.*other arrays"),
        (lambda arrays: arrays.pop("ids"), r"v\.npz: .*checksums.*other arrays"),
        (lambda arrays: arrays.pop("checksums"), r"v\.npz: .*checksums.*mark.*missing"),
        (lambda arrays: arrays.update(checksums=np.array("?")), r"v\.npz: .*checksums cannot be read"),
        (lambda arrays: arrays.update(checksums=np.array('{"format": 2, "sha256": {}}')), r"v\.npz: .*format 2"),
    ],
)
def test_arrays_that_were_changed_are_refused(change, message, tmp_path):
    Embedding(np.eye(2), ["a", "b"]).save(tmp_path / "v.npz")
    with np.load(tmp_path / "v.npz", allow_pickle=False) as archive:
        arrays = dict(archive)
    change(arrays)
    np.savez(tmp_path / "v.npz", **arrays)
    with zipfile.ZipFile(tmp_path / "v.npz", "a") as archive:
        archive.comment = COMMENT
    with pytest.raises(BraneError, match=message):
        Embedding.load(tmp_path / "v.npz")


def test_a_header_that_claims_a_terabyte_takes_no_memory(tmp_path):
    with open(tmp_path / "v.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (2**32, 64)})
    with pytest.raises(BraneError, match=r"v\.npy.*header"):
        Embedding.load(tmp_path / "v.npy")


OPENED = {".txt": read, ".csv": read, ".npz": Embedding.load, ".parquet": Embedding.load, ".brane": load_model,
          ".faiss": load_index}  # fmt: skip
COMMANDS = ["embed {} -o v.npz", "inspect {}", "estimate {}", "info {}", "nearest {} a", "evaluate {} --labels stdlib",
            "evaluate v.npz --labels {}", "embed edges.csv --nodes {} -o v.npz", "shard {} -o shards"]  # fmt: skip


@pytest.mark.parametrize("suffix", OPENED)
@pytest.mark.parametrize("name", ["x" * 300, "x" * 5000, "a\0b"])
def test_a_path_that_the_system_refuses_is_an_error_of_this_package(name, suffix):
    with pytest.raises(BraneError, match="cannot be read"):
        OPENED[suffix](name + suffix)


@pytest.mark.parametrize("suffix", OPENED)
def test_a_file_in_a_folder_that_may_not_be_entered_is_named(suffix, closed):
    path = closed / f"file{suffix}"
    with pytest.raises(BraneError, match=f"file{suffix}: .*Permission denied"):
        OPENED[suffix](path)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_the_file_that_it_was_given(command, closed):
    path = closed / ("file.npz" if command.startswith(("nearest", "evaluate {")) else "file.csv")
    result = CliRunner().invoke(app, [word.format(path) for word in command.split()])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {printable(path)}: ")
    assert "Permission denied" in result.stderr


@pytest.fixture
def closed(tmp_path, monkeypatch):
    """Return a folder that cannot be entered; root may enter all, so `os` refuses its paths."""
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text("a,b\nb,c\n")
    Embedding(np.eye(2), ["a", "b"]).save("v.npz")
    folder, stat, opened = tmp_path / "closed", os.stat, open

    def refuse(path, *rest, **more):
        if str(path).startswith(str(folder)):
            raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "stat", lambda path, *rest, **more: refuse(path) or stat(path, *rest, **more))
    monkeypatch.setattr("io.open", lambda path, *rest, **more: refuse(path) or opened(path, *rest, **more))
    return folder


@pytest.mark.parametrize("suffix", [".txt", ".npz", ".parquet", ".faiss"])
def test_a_link_to_a_device_is_refused_as_a_device(suffix, tmp_path):
    path = tmp_path / f"link{suffix}"
    path.symlink_to("/dev/zero")
    with pytest.raises(BraneError, match=f"link{suffix}: this is a device"):
        OPENED[suffix](path)
