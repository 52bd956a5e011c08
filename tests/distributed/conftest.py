"""Run each program of several ranks once for all tests of this folder."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from neural_brane.files.graphs.shards import write_shards

# These programs run as separate processes.
collect_ignore = ["program.py", "engine_program.py", "embed_program.py", "checkpoint_program.py", "oracle.py"]


def load(name: str) -> ModuleType:
    """Return a module of this folder, which the program imports as well."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def ranks_module() -> ModuleType:
    """The module that runs programs of several ranks."""
    return load("ranks")


@pytest.fixture(scope="session")
def jobs() -> ModuleType:
    """The module that starts, observes and kills jobs."""
    return load("jobs")


@pytest.fixture(scope="session")
def cases() -> ModuleType:
    """The module with graphs and settings of the program."""
    return load("cases")


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the results of all ranks, NAME-RANKS-RANK.npz."""
    pytest.importorskip("torch", reason="ranks need torch: pip install 'neural-brane[torch]'")
    output = tmp_path_factory.mktemp("ranks")
    load("ranks").run_ranks("program.py", output)
    return output


@pytest.fixture(scope="session")
def engine_cases() -> ModuleType:
    """The module with the cases that ranks train."""
    return load("engine_cases")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """A function that returns the file of models trained by so many ranks; each number of ranks trains once."""
    require_torchrec()
    output = tmp_path_factory.mktemp("trained")

    def by(ranks: int) -> Path:
        if not (output / f"{ranks}.npz").exists():
            run_torchrun(ranks, "engine_program.py", str(output))
        return output / f"{ranks}.npz"

    return by


@pytest.fixture(scope="session")
def embed_cases() -> ModuleType:
    """The module with the cases that ranks embed."""
    return load("embed_cases")


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of embeddings: two ranks embed all cases, then one rank resumes a training of theirs."""
    require_torchrec()
    output = tmp_path_factory.mktemp("embedded")
    write_shards(load("embed_cases").graph(), output / "graph", 3)
    for ranks in (2, 1):
        run_torchrun(ranks, "embed_program.py", str(output / "graph"), str(output))
    return output


@pytest.fixture(scope="session")
def with_torchrec() -> None:
    """Skip tests that need TorchRec if it is not installed."""
    require_torchrec()


def run_torchrun(ranks: int, program: str, *arguments: str) -> None:
    """Run a program of this folder on so many ranks."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(ranks)]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", str(Path(__file__).parent / program)]
    settings = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    settings |= {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1", "TRITON_INTERPRET": "1"}  # no test needs a GPU
    done = subprocess.run([*command, *arguments], env=settings, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-5000:]


def require_torchrec() -> None:
    """Skip the test if TorchRec is not installed."""
    for package in ("torchrec", "fbgemm_gpu"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is missing: pip install --no-deps torchrec==1.8.0 fbgemm-gpu-cpu==1.8.0")
