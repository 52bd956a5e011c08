"""Sizes in a file's header are checked before memory is allocated; each test runs under a limit on memory."""

import os
import resource
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import neural_brane
from neural_brane.errors import BraneError, EmbeddingError, GraphError, OutOfMemoryError, ReadingWarning
from neural_brane.files.graphs.formats import read_graph
from neural_brane.files.vectors.formats import read_vectors
from neural_brane.graph.memory import available, require_memory, show_size

ROOM = 500 << 20  # bytes, enough for libraries that are loaded later


@pytest.fixture(autouse=True, scope="module")
def loaded(tmp_path_factory):
    """Read a small graph first, because libraries and the stacks of their threads take address space."""
    path = tmp_path_factory.mktemp("small") / "graph.txt"
    path.write_text("a b\nb c\n")
    read_graph(path)


@pytest.fixture(autouse=True)
def limited(loaded):
    """Limit this process to little more memory than it has now, so that trusting a wrong size fails the test."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (taken + ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def write_zeros(path: Path, members: dict[str, tuple[int, str]]) -> None:
    """Write a compressed archive of arrays of zeros in blocks: a small file with large arrays."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, (count, kind) in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as stream:
                header = {"descr": kind, "fortran_order": False, "shape": (count,)}
                np.lib.format.write_array_header_1_0(stream, header)
                block, left = bytes(1 << 24), count * np.dtype(kind).itemsize
                while left:
                    left -= stream.write(block[:left])


def write_header(path: Path, shape: tuple[int, ...]) -> None:
    with open(path, "wb") as stream:
        np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": shape})
        stream.write(bytes(64))


def test_a_header_with_far_more_nodes_than_lines_is_refused(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("300000000 1\n1 2\n")
    with pytest.raises(GraphError, match=r"graph.txt:1: .*300,000,000"):
        read_graph(path)


def test_a_moderate_number_of_isolated_nodes_in_the_header_is_accepted(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("20000 1\n1 2\n")
    with pytest.warns(ReadingWarning, match=r"header.*20000"):
        assert len(read_graph(path)) == 20_000


def test_an_archive_of_zeros_is_checked_by_its_unpacked_size(tmp_path):
    path = tmp_path / "graph.npz"
    write_zeros(path, {"adj_data": (150_000_000, "<f4"), "adj_indices": (10, "<i4")})
    assert path.stat().st_size < 10_000_000
    with pytest.raises(OutOfMemoryError, match=r"arrays.*600.0"):
        read_graph(path)
    with pytest.raises(OutOfMemoryError, match=r"needs 600.0 MB"):
        read_vectors(path)


def test_a_member_whose_header_claims_more_than_it_holds_is_refused(tmp_path):
    write_header(tmp_path / "big.npy", (1 << 20, 1 << 20))
    with zipfile.ZipFile(tmp_path / "graph.npz", "w") as archive:
        archive.write(tmp_path / "big.npy", "adj_data.npy")
    with pytest.raises(GraphError, match=r"header.*4.4"):
        read_graph(tmp_path / "graph.npz")
    with pytest.raises(EmbeddingError, match=r"header.*4.4"):
        read_vectors(tmp_path / "big.npy")


def test_a_header_with_far_more_columns_than_entries_is_refused(tmp_path):
    path = tmp_path / "graph.npz"
    matrix = {"data": np.ones(2, "f4"), "indices": np.array([1, 0]), "indptr": np.array([0, 1, 2]), "shape": [2, 2]}
    both = {"adj": matrix, "attr": matrix | {"shape": [2, 1 << 40]}}
    np.savez(path, **{f"{prefix}_{name}": part for prefix, parts in both.items() for name, part in parts.items()})
    with pytest.raises(GraphError, match=r"attr_shape.*1,099,511,627,776"):
        read_graph(path)


@pytest.mark.parametrize("suffix", [".bin", ".txt"])
def test_a_first_line_with_more_vectors_than_follow_is_refused(suffix, tmp_path):
    path = tmp_path / f"vectors{suffix}"
    path.write_bytes(b"999999999 1000\nfirst " + (bytes(4000) if suffix == ".bin" else b"0.5 " * 1000 + b"\n"))
    with pytest.raises(EmbeddingError, match=r"999999999 nodes.*1"):
        read_vectors(path)


@pytest.mark.parametrize("suffix", ["", ".npz"])
def test_a_device_that_never_ends_is_refused(suffix, tmp_path):
    path = tmp_path / f"zero{suffix}"
    path.symlink_to("/dev/zero")
    with pytest.raises(GraphError, match="this is a device, not a file"):
        read_graph(path)


def test_a_pipe_is_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with subprocess.Popen([sys.executable, "-c", f"open({str(path)!r}, 'w').write('a b\\nb c\\n')"]):
        assert len(read_graph(path)) == 3


def test_a_pipe_of_zeros_that_never_ends_is_given_up(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with (
        subprocess.Popen(["dd", "if=/dev/zero", f"of={path}", "bs=1M"], stderr=subprocess.DEVNULL),
        pytest.raises(GraphError, match="the file is binary"),
    ):
        read_graph(path)


def test_the_memory_of_a_synthetic_graph_is_checked_before_it_is_made():
    with pytest.raises(OutOfMemoryError, match="99,999,999,999,999 nodes needs"):
        neural_brane.load("synthetic:99999999999999")


def test_limits_of_the_process_and_of_control_groups_count(tmp_path):
    assert available() < 2 * ROOM
    for path, text in {
        "proc/meminfo": "MemTotal: 100 kB\nMemAvailable:  50000000 kB\nSwapFree: 0 kB\n",
        "proc/self/cgroup": "4:memory:/job\n0::/user/one\n",
        "sys/fs/cgroup/user/memory.max": "700000000",
        "sys/fs/cgroup/user/memory.current": "500000000",
        "sys/fs/cgroup/user/memory.stat": "anon 5\ninactive_file 1000000\n",
        "sys/fs/cgroup/user/one/memory.max": "max",
        "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "9223372036854771712",
        "sys/fs/cgroup/memory/job/memory.usage_in_bytes": "1",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "300000000",
        "sys/fs/cgroup/memory/memory.usage_in_bytes": "290000000",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    assert available(tmp_path) == 10_000_000
    (tmp_path / "proc/self/cgroup").write_text("0::/user/one\n")
    assert available(tmp_path) == 201_000_000


def test_an_error_says_how_much_memory_is_needed_and_available():
    with pytest.raises(OutOfMemoryError, match=r"table.*2.4.*1.0"):
        require_memory(2_350_000_000, "a table", "give less", room=1_000)
    require_memory(1_000, "a table", "give less", room=1_000)
    assert issubclass(OutOfMemoryError, BraneError)
    assert [show_size(n) for n in (12, 999_600, 1.5e19)] == ["12 bytes", "1.0 MB", "15,000.0 PB"]


@pytest.mark.parametrize("limit", [500_000_000, 1_000_000_000])
def test_too_little_memory_for_tables_is_one_line(limit, tmp_path):
    (tmp_path / "edges.csv").write_text("a,b\nb,c\n")
    code = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_AS, ({limit}, {limit}));"
        f"sys.argv = ['brane', 'inspect', '{tmp_path}/edges.csv']; from neural_brane.cli import main; main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1), ended.stderr
    assert "ulimit -v" in ended.stderr
