"""The engines on all devices: they train the same model, and errors are clear if a device is missing."""

import subprocess
import sys

import numpy as np
import pytest

from neural_brane import NeuralBrane
from neural_brane.errors import CheckpointError, ParameterError
from neural_brane.methods import training

QUICK = {"dim": 8, "epochs": 2, "batches_per_epoch": 3, "batch_size": 3, "seed": 1, "table_std": 0.5}


def test_a_device_nobody_knows_is_refused(small_graph):
    with pytest.raises(ParameterError, match="device='tpu' makes no sense; give one of cpu, cuda, auto"):
        NeuralBrane(device="tpu").fit(small_graph)


@pytest.mark.parametrize("absent", ["torch", "triton"])
def test_cuda_without_its_packages_says_what_is_missing_and_how_to_get_it(small_graph, monkeypatch, absent):
    monkeypatch.setattr(training, "find_spec", lambda name: None if name == absent else object())
    with pytest.raises(
        ParameterError, match=rf"package {absent} is not installed; pip install 'neural-brane\[torch\]'"
    ):
        NeuralBrane(device="cuda").fit(small_graph)


def test_auto_takes_the_cpu_where_there_is_no_gpu_and_says_so(small_graph, monkeypatch, caplog):
    monkeypatch.setattr(training, "_missing", lambda packages: "the package torch is not installed")
    method = NeuralBrane(device="auto", **QUICK).fit(small_graph)
    assert "training on the CPU (the package torch is not installed)" in caplog.text
    assert method.provenance()["parameters"]["device"] == "cpu"


@pytest.mark.parametrize("recipe", ["default", "released", "paper"])
def test_the_gpu_learns_what_the_cpu_learns(small_graph, monkeypatch, recipe):
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    if not torch.cuda.is_available():
        monkeypatch.setattr(training, "_missing", lambda packages: None)
    cpu, gpu = (NeuralBrane(recipe=recipe, device=device, **QUICK).fit(small_graph) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(gpu.loss_history_, cpu.loss_history_, rtol=1e-4)
    np.testing.assert_allclose(gpu.embedding_.vectors, cpu.embedding_.vectors, rtol=1e-3, atol=1e-5)


def test_a_run_on_the_gpu_goes_on_from_its_checkpoint(small_graph, monkeypatch, tmp_path):
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    if not torch.cuda.is_available():
        monkeypatch.setattr(training, "_missing", lambda packages: None)
    settings = QUICK | {"device": "cuda", "deterministic": True, "batches_per_epoch": 1, "dim": 4}
    whole = NeuralBrane(**settings).fit(small_graph)
    NeuralBrane(checkpoint=tmp_path / "run", **settings | {"epochs": 1}).fit(small_graph)
    resumed = NeuralBrane(checkpoint=tmp_path / "run", **settings).fit(small_graph)
    assert resumed.loss_history_ == whole.loss_history_
    np.testing.assert_array_equal(resumed.embedding_.vectors, whole.embedding_.vectors)
    with pytest.raises(CheckpointError, match=r"device.*'cuda'.*'cpu'"):
        NeuralBrane(checkpoint=tmp_path / "run", **settings | {"device": "cpu"}).fit(small_graph)


def test_the_gpu_needs_numpy_scipy_torch_and_triton_alone():
    """All other imports are blocked; without a GPU, Triton interprets the kernels."""
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    code = """
import sys
for name in ("numba", "polars", "typer", "rich", "sklearn", "pooch", "threadpoolctl", "safetensors", "matplotlib"):
    sys.modules[name] = None
import torch
from neural_brane.methods import training
if not torch.cuda.is_available():
    training._missing = lambda packages: None
from neural_brane import NeuralBrane, synthetic
method = NeuralBrane(dim=4, epochs=1, batches_per_epoch=2, batch_size=2, seed=0, device="cuda")
assert method.fit_transform(synthetic(300)).vectors.shape == (300, 4)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
