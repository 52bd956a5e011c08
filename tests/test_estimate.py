"""Test estimates of a training before it begins: memory, sizes without a graph, time, and refusals."""

import json
import tracemalloc
import warnings

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane import METHODS, estimate, synthetic
from neural_brane.cli.app import app
from neural_brane.errors import OutOfMemoryError
from neural_brane.experiments.estimate import find_sizes, miniature
from neural_brane.files.graphs.formats import write_graph
from neural_brane.graph.memory import Sizes
from neural_brane.methods import untrainable
from neural_brane.methods.base import Embedder
from neural_brane.methods.training import check_room, largest, needed

MILLION = Sizes(nodes=1_000_000, edges=10_000_000, attributes=100_000, attribute_entries=20_000_000)
SHORT = {"epochs": 2, "batches_per_epoch": 2, "walks_per_node": 1, "samples": 1_000_000, "nnmf_epochs": 2}
# tracemalloc does not see PyTorch's memory.
TRACED = [name for name in METHODS if METHODS[name].extra != "torch"]


@pytest.fixture(scope="module")
def graph():
    return synthetic(20_000)


def short(name: str):
    method = METHODS[name](seed=0)
    return method.set_params(**{key: value for key, value in SHORT.items() if key in method.get_params()})


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACED)
def test_memory_is_what_the_arrays_take(name, graph):
    """NumPy reports every array to tracemalloc, so the peak of a training is known to the byte."""
    method = short(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method.fit(synthetic(300))  # compiles the kernels, whose memory is not counted
        tracemalloc.start()
        method.fit(graph)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert 0.75 * peak < needed(type(method)(**method.parameters_for(graph)), Sizes.from_graph(graph)) < 1.35 * peak


@pytest.mark.parametrize("name", METHODS)
def test_memory_and_work_grow_with_the_graph(name):
    method = METHODS[name]()
    double = Sizes(nodes=2_000_000, edges=20_000_000, attributes=200_000, attribute_entries=40_000_000)
    assert 1.5 < needed(method, double) / needed(method, MILLION) < 2.2
    assert method.work(double) > 1.5 * method.work(MILLION)
    assert needed(METHODS[name](dim=300), MILLION) > needed(method, MILLION)


def test_sizes_of_a_graph_are_those_of_its_arrays(graph):
    sizes = Sizes.from_graph(graph)
    matrices = (graph.adjacency, graph.attributes)
    arrays = [part for matrix in matrices for part in (matrix.data, matrix.indices, matrix.indptr)]
    arrays += [graph.ids, graph.attribute_names, graph.labels]
    assert sizes.graph_bytes == pytest.approx(sum(array.nbytes for array in arrays), rel=0.001)
    assert (sizes.nodes, sizes.edges, sizes.weighted) == (20_000, graph.edges, False)


def test_a_synthetic_graph_and_an_archive_tell_their_sizes_unread(graph, tmp_path):
    def refuse():
        raise AssertionError("the graph was read")

    write_graph(graph, tmp_path / "graph.npz")
    for source in ("synthetic:20000", tmp_path / "graph.npz"):
        found = find_sizes(source, refuse).sizes
        known = Sizes.from_graph(graph)
        assert (found.nodes, found.attributes, found.attribute_entries) == (20_000, 2_000, 400_000)
        assert found.edges == pytest.approx(known.edges, rel=0.01)
        assert found.graph_bytes == pytest.approx(known.graph_bytes, rel=0.01)


def test_an_estimate_can_be_kept_as_json():
    found = estimate(MILLION, time=False, room=10**10)
    kept = json.loads(json.dumps(found.as_dict()))
    assert kept["fits"] is True
    assert kept["peak"] == sum(kept["memory"].values()) > kept["memory"]["graph"] > 3e8
    assert kept["triplets_per_node"] == pytest.approx(50, abs=2)
    assert kept["seconds"] is None


def test_what_does_not_fit_is_told_with_a_width_that_does():
    found = estimate(MILLION, time=False, room=2_250_000_000)
    assert not found.fits
    smaller = estimate(MILLION, time=False, room=2_250_000_000, dim=found.fitting_dim)
    assert smaller.fits
    assert found.verdict == f"does not fit: 2.2 GB available; dim={found.fitting_dim} would fit"


def test_time_is_measured_by_part():
    found = estimate(Sizes(nodes=2_000, edges=10_000, attributes=200, attribute_entries=4_000), dim=16)
    assert list(found.seconds) == ["reading", "spectral part", "training", "vectors"]
    assert all(seconds >= 0 for seconds in found.seconds.values())
    assert found.total_seconds == sum(found.seconds.values()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in METHODS if name not in untrainable()])
def test_every_method_is_timed(name):
    sizes = Sizes(nodes=2_000, edges=10_000, attributes=200, attribute_entries=4_000)
    assert estimate(sizes, name, dim=16).total_seconds > 0


def test_a_miniature_has_the_shape_of_the_graph():
    small = Sizes.from_graph(miniature(MILLION, 1_000))
    assert small.links / small.nodes == pytest.approx(20, rel=0.1)
    assert small.attribute_entries / small.nodes == 20


def test_a_training_that_cannot_fit_is_refused_before_it_allocates(graph):
    method = METHODS["neural-brane"](dim=1_000_000, seed=0)
    tracemalloc.start()
    with pytest.raises(OutOfMemoryError, match=r"dim=1000000.*graph.*20,000"):
        method.fit(graph)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_room_decides():
    method = METHODS["attributes"](dim=100)
    enough = needed(method, MILLION)
    check_room(method, MILLION, room=enough)
    with pytest.raises(OutOfMemoryError, match="dim=50"):
        check_room(method, MILLION, room=enough - 1)
    with pytest.raises(OutOfMemoryError, match="no dim"):
        check_room(method, MILLION, room=1_000)
    with pytest.raises(OutOfMemoryError):
        check_room(method, MILLION, beside=1, room=enough)


def test_the_largest_moment_counts():
    assert largest({"first": {"a": 5, "b": 1}, "second": {"a": 4}}) == ("first", {"a": 5, "b": 1})


def test_the_command_says_what_it_takes(tmp_path):
    runner = CliRunner()
    shown = runner.invoke(app, ["estimate", "synthetic:1000000", "--no-time"])
    assert shown.exit_code == 0
    assert "graph" in shown.stdout
    assert "triplets: at most 51 per node" in shown.stdout
    kept = runner.invoke(app, ["estimate", "stdlib", "--no-time", "--method", "attributes", "--json"])
    assert json.loads(kept.stdout)["sizes"]["nodes"] == 554
    large = runner.invoke(app, ["estimate", "synthetic:99999999999999", "--no-time"])
    assert large.exit_code == 1
    assert "does not fit" in large.stdout
    refused = runner.invoke(app, ["embed", "stdlib", "--dim", "1000000", "-o", str(tmp_path / "v.npz")])
    assert refused.exit_code == 2
    assert "would fit" in refused.stderr
    assert not (tmp_path / "v.npz").exists()


def test_memory_that_runs_out_all_the_same_is_told_in_a_line(monkeypatch, tmp_path):
    def run_out(*_):
        raise MemoryError("Unable to allocate 5 GiB")

    monkeypatch.setattr(METHODS["attributes"], "_learn", run_out)
    done = CliRunner().invoke(app, ["embed", "stdlib", "--method", "attributes", "-o", str(tmp_path / "v.npz")])
    assert done.exit_code == 2
    assert "error: " in done.stderr
    assert "Unable to allocate 5 GiB" in done.stderr
    assert "brane estimate SOURCE" in done.stderr


def test_edges_of_different_weights_are_noticed():
    weighted = synthetic(50)
    weighted.adjacency.data[:] = np.linspace(1, 2, weighted.adjacency.nnz)
    assert Sizes.from_graph(weighted).weighted


def test_every_method_counts_its_own_arrays():
    for kind in METHODS.values():
        assert kind.memory is not Embedder.memory
