"""Outputs are refused before a computation, a failed write keeps the vectors, and a killed run leaves only drafts."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane import load
from neural_brane.cli.app import app
from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.files.storage import DRAFT, atomic, check_distinct, check_space, check_target
from neural_brane.files.vectors.formats import FORMATS, VectorFile, expected_size

TRAIN = ["--method", "attributes", "--dim", "2"]
EDGES = "a b\nb c\nc d\nd a\n"


@pytest.fixture
def files(tmp_path, monkeypatch) -> Path:
    """Write a graph to the current folder under several names."""
    monkeypatch.chdir(tmp_path)
    for name in ("g.txt", "words.txt"):
        Path(name).write_text(EDGES)
    Path("g.npz").symlink_to("g.txt")
    Path("link.txt").symlink_to("g.txt")
    os.link("g.txt", "hard.txt")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("embed g.txt -o g.txt", "--output g.txt is also read as SOURCE and would be overwritten"),
        ("embed g.txt -o ./g.txt", "--output g.txt is also read as SOURCE"),
        ("embed g.txt -o link.txt", "--output link.txt, the same file as g.txt, is also read as SOURCE"),
        ("embed link.txt -o g.txt", "--output g.txt, the same file as link.txt, is also read"),
        ("embed g.txt -o hard.txt", "--output hard.txt, the same file as g.txt, is also read"),
        ("embed g.txt --attributes words.txt -o words.txt", "is also read as --attributes"),
        ("embed g.txt --labels words.txt -o words.txt", "is also read as --labels"),
        ("embed g.txt -o v.npz --method neural-brane --seed 0 --checkpoint v.npz", "is also written as --output"),
        ("embed g.txt -o v.npz --method neural-brane --seed 0 --set checkpoint=g.txt", "is also read as SOURCE"),
        ("embed g.txt -o v.npz --log g.txt", "--log g.txt is also read as SOURCE"),
        ("embed g.txt -o v.npz --log v.npz", "--log v.npz is also written as --output"),
        ("split-edges g.txt -o g.npz --held-out p.npz", "is also read as SOURCE"),
        ("split-edges g.txt -o t.npz --held-out ./t.npz", "--held-out t.npz is also written as --output"),
        (
            "evaluate g.txt --labels words.txt --save-splits words.txt",
            "--save-splits words.txt is also read as --labels",
        ),
    ],
)
def test_an_output_that_is_also_an_input_is_refused_before_any_work(files, command, message):
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    result = CliRunner().invoke(app, command.split())
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1  # no training was announced
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


def test_the_file_of_a_dataset_is_not_overwritten_either(tmp_path, monkeypatch):
    path = tmp_path / "wiki" / "wiki.npz"
    path.parent.mkdir()
    path.write_text("of the user")
    monkeypatch.setenv("NEURAL_BRANE_DATA", str(tmp_path))
    result = CliRunner().invoke(app, ["embed", "wiki", "-o", str(path)])
    assert "is also read as graph of wiki and would be overwritten" in result.stderr
    assert path.read_text() == "of the user"


@pytest.mark.parametrize(
    "command", ["demo --output", "tune deepwalk stdlib -o", "reproduce --quick -o", "compare stdlib -o"]
)
def test_a_folder_that_cannot_be_made_is_refused_before_any_training(files, command):
    result = CliRunner().invoke(app, [*command.split(), "g.txt/folder"])
    assert result.exit_code == 2
    assert "g.txt' is not a folder that can be written to" in result.stderr
    assert len(result.stderr.splitlines()) == 1


WRITTEN = [
    "embed stdlib -o", "embed stdlib --save-model m.brane --log", "embed stdlib --save-model", "shard stdlib -o",
    "embed stdlib -o v.npz --checkpoint", "cluster v.npz -o", "compare stdlib -o",
    "split-edges stdlib -o t.npz --held-out", "split-edges stdlib --held-out p.npz -o",
    "evaluate v.npz --labels stdlib --save-splits", "explore v.npz --html",
    "nearest v.npz json --index", "convert v.npz --parts 2 -o", "convert v.npz -o", "demo --output",
    "tune deepwalk stdlib -o", "reproduce --quick -o", "distributed embed stdlib -o", "transform m.brane g.txt -o",
    "distributed embed stdlib -o v.npz --checkpoint", "update m.brane g.txt -o",
]  # fmt: skip
SUFFIXES = {"--save-model": ".brane", "cluster": ".csv", "--html": ".html", "--index": ".faiss"}


@pytest.mark.parametrize("command", WRITTEN)
def test_an_output_in_a_folder_that_does_not_exist_is_refused_and_nothing_is_made(command, files):
    Embedding(np.eye(4), ["a", "b", "c", "json"]).save("v.npz")
    words = command.split()
    suffix = SUFFIXES.get(words[-1], SUFFIXES.get(words[0], ".npz"))
    before = sorted(files.rglob("*"))
    result = CliRunner().invoke(app, [*words, f"nowhere/new{suffix}"])
    assert result.exit_code == 2
    assert f"mkdir -p {files}/nowhere" in result.stderr
    assert len(result.stderr.splitlines()) == 1  # no training was announced
    assert sorted(files.rglob("*")) == before


def test_paths_of_files_that_do_not_exist_are_compared_too(tmp_path):
    check_distinct({"-o": tmp_path / "a", "--log": None}, {"SOURCE": tmp_path / "b", "--labels": None})
    (tmp_path / "folder").symlink_to(tmp_path)
    with pytest.raises(ParameterError, match="would be overwritten"):
        check_distinct({"-o": tmp_path / "folder" / "a", "--checkpoint": tmp_path / "a"}, {})


def test_a_symlinked_output_is_followed(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "v.npz").symlink_to("disk/real.npz")
    Embedding(np.eye(2), [1, 2]).save(tmp_path / "v.npz")
    assert (tmp_path / "v.npz").is_symlink()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["disk", "real.npz", "v.npz"]
    assert Embedding.load(tmp_path / "disk" / "real.npz").ids.tolist() == [1, 2]


def test_a_file_keeps_its_permissions(tmp_path):
    path = tmp_path / "v.npz"
    for value in (1, 2):
        Embedding(np.eye(1), [value]).save(path)
        path.chmod(0o640)
    Embedding(np.eye(1), [3]).save(path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_check_target_tries_to_write(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(os, "open", refuse)  # root may write anywhere, so a folder's permissions would not do
    with pytest.raises(EmbeddingError, match=r"is not a folder that can be written to \(Permission denied\)"):
        check_target(tmp_path / "v.npz", (".npz",), ".npz", EmbeddingError)


def test_a_file_that_the_disk_has_no_room_for_is_refused_with_both_numbers(tmp_path):
    free = shutil.disk_usage(tmp_path).free
    with pytest.raises(EmbeddingError, match=r"bytes.*'.*'"):
        check_space(tmp_path / "new" / "v.npz", free + 10**15, EmbeddingError)
    with pytest.raises(EmbeddingError, match=r"v\.npz: .*bytes"):
        VectorFile(tmp_path / "v.npz").check_size(np.arange(1000), free)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_expected_size_is_about_the_size(suffix, tmp_path):
    ids = np.arange(5000)
    table = np.random.default_rng(0).normal(size=(5000, 16)) / 8
    target = VectorFile(tmp_path / f"v{suffix}")
    target.write(ids, [table], dim=16)
    size = sum(file.stat().st_size for file in target.files)
    assert expected_size(FORMATS[suffix], ids, 16) == pytest.approx(size, rel=0.25)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_disk_that_runs_full_costs_neither_the_vectors_nor_the_earlier_file(suffix, tmp_path, monkeypatch):
    table = np.random.default_rng(0).normal(size=(8000, 8)).astype(np.float32)
    path, elsewhere = tmp_path / "there" / f"v{suffix}", tmp_path / "elsewhere"
    for folder in (path.parent, elsewhere):
        folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    Embedding(np.eye(2), [1, 2]).save(path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limits = iter([100_000, soft])  # bytes of the first file and of the next one

    def blocks():
        resource.setrlimit(resource.RLIMIT_FSIZE, (next(limits), hard))
        yield from np.array_split(table, 4)

    try:
        with pytest.raises(
            EmbeddingError, match=r"could not be written \(.*File too large.*the vectors are kept"
        ) as caught:
            VectorFile(path).write(np.arange(8000), blocks, dim=8, provenance={"method": "by hand"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    kept = next(elsewhere.rglob("v.npz"))
    assert str(kept) in str(caught.value)
    np.testing.assert_array_equal(Embedding.load(kept).vectors, table)
    assert Embedding.load(kept).provenance == {"method": "by hand"}
    assert Embedding.load(path).ids.tolist() == [1, 2]
    left = [one for one in path.parent.rglob("*") if one.is_file()]
    assert sorted(left) == sorted(VectorFile(path).files)


def test_a_folder_that_is_removed_meanwhile_does_not_cost_the_vectors(tmp_path, monkeypatch):
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def blocks():
        shutil.rmtree(folder, ignore_errors=True)
        yield np.eye(2, dtype=np.float32)

    with pytest.raises(EmbeddingError, match=r"No such file or directory\); the vectors are kept in .*brane convert"):
        VectorFile(folder / "v.tsv").write([1, 2], blocks, dim=2)
    assert Embedding.load(next(tmp_path.rglob("v.npz"))).ids.tolist() == [1, 2]


WRITERS = [
    "shard stdlib -o shards",
    "shard g.txt -o shards",
    "cluster v.npz -k 2 -o clusters.csv",
    "compare stdlib --task classify --methods attributes --dim 2 --runs 1 --jobs 1 -o compared",
    "split-edges stdlib -o train.npz --held-out pairs.npz",
    "evaluate v.npz --labels stdlib --save-splits splits.json",
    "explore v.npz --layout pca --html map.html",
    "nearest v.npz json --index vectors.faiss",
    "embed stdlib --method attributes --dim 2 --save-model m.brane",
    "embed stdlib --method attributes --dim 2 -o w.npz",
    "convert v.npz -o whole --parts 2",
    "convert v.npz -o whole --parts 2 --part-format parquet",
]


@pytest.mark.parametrize("command", WRITERS)
def test_a_full_disk_is_one_line_that_names_the_file_and_leaves_nothing(command, files, monkeypatch):
    words = command.split()
    target = words[-1] if "--parts" not in words and "--held-out" not in words else words[words.index("-o") + 1]
    Embedding(np.random.default_rng(0).normal(size=(554, 4)), load("stdlib").ids).save("v.npz")
    monkeypatch.setattr(tempfile, "tempdir", str(files / "nowhere"))
    before = [path for path in files.rglob("*") if path.is_file()]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, hard))  # bytes of each file, as on a disk that is full
    try:
        result = CliRunner().invoke(app, words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert result.exit_code == 2, result.output
    error = result.stderr.splitlines()[-1]
    assert error.startswith("error: ")
    assert target in error
    assert "make room" in error
    assert [path for path in files.rglob("*") if path.is_file()] == before


KILLED = """
import os, sys, time
from neural_brane.files.storage import atomic
with atomic(sys.argv[1]) as draft:
    draft.write_text("half")
    print(draft, flush=True)
    time.sleep(60)
"""


def test_the_next_run_removes_drafts_of_killed_runs_only(tmp_path):
    target = tmp_path / "v.txt"
    command = [sys.executable, "-c", KILLED, str(target)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    own = tmp_path / f"{DRAFT}notes.txt"
    own.touch()
    drafts = [Path(run.stdout.readline().strip()) for run in runs]
    try:
        assert all(draft.name.startswith(f"{DRAFT}{run.pid}-") for draft, run in zip(drafts, runs, strict=True))
        runs[0].send_signal(signal.SIGKILL)
        runs[0].wait()
        assert drafts[0].exists()
        with atomic(target) as draft:
            draft.write_text("whole")
        assert sorted(tmp_path.iterdir()) == sorted([target, drafts[1], own])
        assert drafts[1].read_text() == "half"
    finally:
        for run in runs:
            run.kill()
            run.communicate()
