"""Programs of several ranks."""

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

collect_ignore_glob = ["*_program.py"]  # they run as processes of their own


@pytest.fixture(scope="session")
def run_ranks() -> Callable[..., None]:
    """run_ranks(program, output) of ranks.py, which programs import as well."""
    spec = importlib.util.spec_from_file_location("ranks", Path(__file__).parent / "ranks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.run_ranks
