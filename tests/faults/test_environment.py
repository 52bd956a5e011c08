"""Training works without writable folders, with damaged compiled code, in forked processes and in several threads."""

import hashlib
import os
import pickle
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numba
import pytest

import neural_brane
from neural_brane.kernels.compiling import DIGEST_BYTES, LIBRARY, _installed

SOURCE = Path(neural_brane.__file__).parent
SHORT = "from neural_brane import Attributes, synthetic; print(Attributes(dim=4, seed=0).fit_transform(synthetic(100)))"
TIMEOUT = 120  # seconds, so that a run that hangs fails


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess:
    """Run a Python command in an environment that differs in some variables."""
    known = os.environ | {"PYTHONPATH": str(SOURCE.parent)} | environment
    return subprocess.run(
        [sys.executable, "-W", "ignore", *command], env=known, capture_output=True, text=True, timeout=TIMEOUT
    )


@pytest.fixture
def nobody(tmp_path):
    """Yield a command that runs another one as a user without root's rights, and a read-only copy of the package."""
    own = [folder for folder in (tmp_path, *tmp_path.parents) if "pytest" in str(folder)]  # closed to other users
    for folder in own:
        folder.chmod(0o755)
    package = tmp_path / "package"
    shutil.copytree(SOURCE, package / "neural_brane", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (package, *package.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    command: list[str] = []
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("permissions do not bind root, and there is no setpriv to become someone else")
        command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        if subprocess.run([*command, sys.executable, "-c", "import numba"], capture_output=True, cwd="/").returncode:
            pytest.skip("the packages that are installed here can be read by root alone")
    yield command, package
    for path in (package, *package.rglob("*")):
        path.chmod(0o755)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are those of POSIX")
def test_training_works_without_a_writable_folder(nobody):
    command, package = nobody
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [*command, sys.executable, "-W", "ignore", "-c", SHORT],
        env=environment | {"PYTHONPATH": str(package), "HOME": "/proc/nowhere", "XDG_CACHE_HOME": "/proc/nowhere"},
        capture_output=True,
        text=True,
        timeout=TIMEOUT,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("NUMBA_CACHE_DIR") == 1


def load(path: Path):
    """Return a module, loaded from its file again at each call."""
    spec = spec_from_file_location(path.stem, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    "damage",
    [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: b"\x80garbage" * 9, lambda data: _flip(data)],
    ids=["empty", "cut off", "garbage", "one bit"],
)
def test_damaged_code_is_compiled_again(damage, tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    source = tmp_path / "doubling.py"
    source.write_text("from neural_brane.kernels.compiling import njit\n\n\n@njit\ndef double(x):\n    return 2 * x\n")
    assert load(source).double(4) == 8
    files = [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert sorted(path.suffix for path in files) == [".nbc", ".nbi"]
    for chosen in files:
        chosen.write_bytes(damage(chosen.read_bytes()))
        again = load(source).double
        assert again(4) == 8
        assert sum(again.stats.cache_misses.values()) == 1
        whole = load(source).double
        assert whole(4) == 8
        assert sum(whole.stats.cache_hits.values()) == 1


def test_code_of_an_earlier_version_whose_types_have_moved_is_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "kept"))
    source = tmp_path / "doubling.py"
    source.write_text("from neural_brane.kernels.compiling import njit\n\n\n@njit\ndef double(x):\n    return 2 * x\n")
    assert load(source).double(4) == 8
    (index,) = (tmp_path / "kept").rglob("*.nbi")
    content = pickle.dumps(numba.__version__) + b"cneural_brane.moved\nThing\n."  # a class of a missing module
    index.write_bytes(content + hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest())
    assert load(source).double(4) == 8
    again = load(source).double
    assert again(4) == 8
    assert sum(again.stats.cache_hits.values()) == 1


def _flip(data: bytes) -> bytes:
    at = len(data) // 2
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")
@pytest.mark.parametrize("layer", ["tbb", "omp", "workqueue"])
@pytest.mark.parametrize("method", ["neural-brane", pytest.param("deepwalk", marks=pytest.mark.slow)])
def test_forks_and_threads_give_the_same_vectors(layer, method):
    if layer == "tbb" and not any(Path(place).exists() for place in _installed(LIBRARY["linux"])):
        pytest.skip("the package tbb is not installed")
    script = str(Path(__file__).with_name("processes.py"))
    done = run([script, method], NUMBA_THREADING_LAYER=layer)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"{layer}: 1 result, BLAS restored"
    assert (done.stdout.startswith("refused: ") and "forked" in done.stdout) == (layer == "omp")


def test_neither_optimisation_nor_hashes_nor_locale_change_a_bit():
    code = (
        "from hashlib import sha256; from neural_brane import Attributes, synthetic;"
        "print(sha256(Attributes(dim=4, seed=0).fit_transform(synthetic(100)).vectors.tobytes()).hexdigest())"
    )
    plain = run(["-c", code], PYTHONHASHSEED="0")
    other = run(["-O", "-c", code], PYTHONHASHSEED="7", LC_ALL="C", PYTHONUTF8="0")
    assert plain.stdout == other.stdout != ""


def test_python_without_the_compiler_is_refused_in_one_line(tmp_path):
    command = ["embed", "stdlib", "--method", "attributes", "--dim", "2", "-o", str(tmp_path / "v.npz")]
    done = run(["-m", "neural_brane", *command], NUMBA_DISABLE_JIT="1")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "NUMBA_DISABLE_JIT" in done.stderr


def test_windows_line_ends_and_names_beyond_ascii_in_a_plain_locale(tmp_path):
    (tmp_path / "graph.txt").write_bytes("Zoë b\r\nb c\r\nc d\r\n".encode())
    command = ["embed", str(tmp_path / "graph.txt"), "--method", "propagated-attributes", "--dim", "2", "--seed", "0"]
    done = run(
        ["-c", "from neural_brane.cli import main; main()", *command, "-o", str(tmp_path / "vectors.tsv")],
        LC_ALL="C",
        PYTHONUTF8="0",
        PYTHONCOERCECLOCALE="0",
    )
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "vectors.tsv").read_text(encoding="utf-8").splitlines()
    assert [line.split("\t")[0] for line in lines] == ["id", "Zoë", "b", "c", "d"]


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux")
def test_reading_in_a_forked_process_is_refused_where_it_would_hang(tmp_path):
    (tmp_path / "graph.txt").write_text("".join(f"n{k} n{k // 2}\n" for k in range(1, 5_000)))
    code = (
        "import multiprocessing, sys; from neural_brane import read; read(sys.argv[1])\n"
        "with multiprocessing.get_context('fork').Pool(1) as pool:\n"
        "    try:\n        pool.apply(read, (sys.argv[1],))\n"
        "    except ImportError as error:\n        print(error)"
    )
    done = run(["-c", code, str(tmp_path / "graph.txt")])
    assert "read the graph before the fork" in done.stdout, done.stderr
