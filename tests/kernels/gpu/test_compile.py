import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("neural_brane.kernels.gpu")

KERNELS = {
    "_draw", "_locate", "add_gradients", "add_pulls", "descend", "differentiate", "find_frequent", "gather", "hide",
    "learn", "multiply", "pool", "pool_and_descend", "pool_pieces", "scatter", "score", "slope_of_nodes",
}  # fmt: skip


def test_every_kernel_compiles_for_a_gpu(on_gpu, tmp_path):
    if on_gpu:
        pytest.skip("the other tests compile the kernels where there is a GPU")
    script = Path(__file__).with_name("compile_for_hopper.py")
    settings = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    settings["TRITON_CACHE_DIR"] = str(tmp_path)
    run = subprocess.run([sys.executable, script], env=settings, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert set(run.stdout.split()) == KERNELS
