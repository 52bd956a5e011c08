"""Programs of several ranks, each run once for all tests of this folder."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

collect_ignore = ["program.py", "engine_program.py"]  # they run as processes of their own


def load(name: str) -> ModuleType:
    """A module beside this one, which the program imports as well."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parent / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def cases() -> ModuleType:
    """The graphs and settings that ranks were given."""
    return load("cases")


@pytest.fixture(scope="session")
def found(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what ranks found: WHAT-RANKS-RANK.npz."""
    pytest.importorskip("torch", reason="ranks need torch: pip install 'neural-brane[torch]'")
    output = tmp_path_factory.mktemp("ranks")
    load("ranks").run_ranks("program.py", output)
    return output


@pytest.fixture(scope="session")
def engine_cases() -> ModuleType:
    """What ranks have trained."""
    return load("engine_cases")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what ranks have trained: RANKS.npz."""
    require_torchrec()
    output = tmp_path_factory.mktemp("trained")
    load("ranks").run_ranks("engine_program.py", output)
    return output


def require_torchrec() -> None:
    """Skip what needs TorchRec where it is not installed."""
    for package in ("torchrec", "fbgemm_gpu"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is missing: pip install --no-deps torchrec==1.8.0 fbgemm-gpu-cpu==1.8.0")
