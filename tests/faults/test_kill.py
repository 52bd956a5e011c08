"""Trainings that are killed and resumed many times end with the same bits as an undisturbed one and leave no file."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path(__file__).parent / "killed_trainings.py"
METHODS = ("neural-brane", "deepwalk", "nnmf")


def killed(method, folder, kills, seed):
    """Return how many processes were killed in each way, and how many trainings ended nevertheless."""
    command = [sys.executable, DRIVER, method, folder, str(kills), str(seed)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def check(result, kills):
    assert sum(result["kills"].values()) == kills
    assert min(result["kills"].values()) >= kills // 3  # each of the three ways happened
    assert result["ended"] >= 1


@pytest.mark.parametrize(("method", "kills"), [*zip(METHODS, (4, 3, 3), strict=True)])
def test_ten_kills_cost_nothing(method, kills, tmp_path):
    check(killed(method, tmp_path, kills, seed=1), kills)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_ninety_more_kills_cost_nothing(method, tmp_path):
    check(killed(method, tmp_path, 30, seed=2), 30)
