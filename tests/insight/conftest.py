"""A graph whose reasons are known, as the benchmark makes it."""

import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def planted():
    """The function that makes such graphs."""
    path = Path(__file__).parents[2] / "benchmarks" / "explain.py"
    specification = importlib.util.spec_from_file_location("benchmark_of_explain", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.planted
