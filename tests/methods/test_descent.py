import subprocess
import sys

import numpy as np
import pytest

from neural_brane import METHODS, AttributedGraph, load
from neural_brane.errors import BraneError, DependencyError, ParameterError
from neural_brane.methods import descent as backend
from neural_brane.methods.features import own_attributes

ON_TORCH = [name for name in METHODS if METHODS[name].extra == "torch"]
FEW = {"sdne": {"epochs": 2, "hidden": 64}, "dngr": {"epochs": 2, "hidden": 64}, "graphsage": {"walks_per_node": 1}}
BRIEF = {name: {"epochs": 5} for name in ON_TORCH} | FEW
BY_ATTRIBUTES = [name for name in ON_TORCH if "attributes" in METHODS[name].uses]


def test_methods_are_listed_without_importing_torch():
    code = "import sys; from neural_brane import METHODS; METHODS['graphsage'](); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ON_TORCH)
def test_without_torch_the_error_says_how_to_get_it(name, small_graph, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # marks a module that cannot be imported
    with pytest.raises(
        DependencyError, match=r"PyTorch, which is not installed; run: pip install 'neural-brane\[torch"
    ):
        METHODS[name]().fit(small_graph)
    assert issubclass(DependencyError, BraneError)


@pytest.mark.parametrize("name", ON_TORCH)
def test_devices_that_cannot_be_had_are_told(name, small_graph, monkeypatch, caplog):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ParameterError, match=r"device='cuda'.*PyTorch"):
        METHODS[name](device="cuda").fit(small_graph)
    method = METHODS[name](dim=4, seed=0, device="auto", **BRIEF[name]).fit(small_graph)
    assert method.settings_["device"] == "cpu"
    assert "training on the CPU (PyTorch" in caplog.text


def test_torch_gets_its_threads_back():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()

    def fail():
        with backend.one_thread():
            assert torch.get_num_threads() == 1
            raise RuntimeError

    try:
        torch.set_num_threads(2)
        with pytest.raises(RuntimeError):
            fail()
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_sparse_rows_multiply_as_the_dense_matrix_would(small_graph):
    torch = pytest.importorskip("torch")
    table = backend.glorot(np.random.default_rng(0), (5, 3), "cpu")
    product = backend.SparseRows(small_graph.attributes, "cpu") @ table
    slope = np.random.default_rng(1).random(product.shape, np.float32)
    product.backward(torch.from_numpy(slope))
    dense = small_graph.attributes.toarray()
    np.testing.assert_allclose(product.detach(), dense @ table.detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(table.grad, dense.T @ slope, rtol=1e-5)


def test_first_weights_are_within_glorots_bounds():
    pytest.importorskip("torch")
    weights = backend.glorot(np.random.default_rng(0), (40, 20), "cpu").detach().numpy()
    assert 0.3 < abs(weights).max() <= np.sqrt(6 / 60)
    assert abs(weights.mean()) < 0.03


def test_a_node_is_its_own_attribute_where_there_are_none(small_graph):
    bare = AttributedGraph.from_sparse(small_graph.adjacency)
    np.testing.assert_array_equal(own_attributes(bare).toarray(), np.eye(12))
    assert own_attributes(small_graph) is small_graph.attributes


@pytest.mark.parametrize("name", BY_ATTRIBUTES)
def test_a_graph_without_attributes_is_embedded_but_transforms_no_other(name, small_graph):
    pytest.importorskip("torch")
    bare = AttributedGraph.from_sparse(small_graph.adjacency)
    method = METHODS[name](dim=4, epochs=1, seed=0).fit(bare)
    assert np.isfinite(method.embedding_.vectors).all()
    assert method.embedding_.vectors[0].any()
    with pytest.raises(ParameterError, match="learned from a graph without attributes"):
        method.transform(small_graph)


@pytest.mark.parametrize("name", ON_TORCH)
def test_the_number_of_threads_changes_no_bit(name):
    """The graph is large enough for torch to divide its sums, if it were not limited to one thread."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    vectors = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            method = METHODS[name](seed=1, threads=threads, **BRIEF[name])
            vectors.append(method.fit_transform(load("stdlib")).vectors)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(*vectors)


@pytest.mark.parametrize("name", ON_TORCH)
def test_progress_reports_up_to_the_end(name, small_graph):
    pytest.importorskip("torch")
    seen = []
    method = METHODS[name](dim=4, epochs=2, seed=0, progress=seen.append).fit(small_graph)
    assert seen[-1].done == seen[-1].total
    assert (seen[-1].epoch, seen[-1].epochs) == (2, 2)
    assert seen[-1].loss == pytest.approx(method.loss_history_[-1])
    assert seen[-1].rate > 0


@pytest.mark.parametrize("name", ON_TORCH)
def test_divergence_is_told(name, small_graph):
    pytest.importorskip("torch")
    with pytest.raises(ParameterError, match=r"training.*learning_rate=1e"):
        METHODS[name](dim=4, epochs=2, seed=0, learning_rate=1e38).fit(small_graph)
