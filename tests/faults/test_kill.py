"""Trainings that are killed, resumed and killed again end with the bits of one that never was, and leave no file."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

DRIVER = Path(__file__).parent / "killed_trainings.py"
METHODS = ("neural-brane", "deepwalk", "nnmf")


def killed(method, folder, kills, seed):
    """How many processes were killed in which way, and how many trainings ended all the same."""
    command = [sys.executable, DRIVER, method, folder, str(kills), str(seed)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def check(told, kills):
    assert sum(told["kills"].values()) == kills
    assert min(told["kills"].values()) >= kills // 3  # each of the three ways
    assert told["ended"] >= 1


@pytest.mark.parametrize(("method", "kills"), [*zip(METHODS, (4, 3, 3), strict=True)])
def test_ten_kills_cost_nothing(method, kills, tmp_path):
    check(killed(method, tmp_path, kills, seed=1), kills)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_ninety_more_kills_cost_nothing(method, tmp_path):
    check(killed(method, tmp_path, 30, seed=2), 30)
