"""Test benchmarks/plan.py: its counts against sets, its formula against counts, its arithmetic by hand."""

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from neural_brane import synthetic
from neural_brane.sampling.triplets import TripletSampler

FOLDER = Path(__file__).parent.parent / "benchmarks"
SCRIPTS = ("plan", "plan_rows", "plan_cases", "plan_hours", "plan_text")


@pytest.fixture
def script(monkeypatch):
    """Return a function that imports a script of benchmarks/."""
    monkeypatch.syspath_prepend(FOLDER)
    yield importlib.import_module
    for name in SCRIPTS:
        sys.modules.pop(name, None)


def test_rows_that_each_rank_requests_from_each_owner_are_those_of_sets(script):
    graph, ranks = script("plan_rows").power_law_graph(300), 4
    batch = TripletSampler(graph.adjacency).draw(0, 50)
    for matrix in (graph.adjacency, graph.attributes):
        block = -(-matrix.shape[1] // ranks)
        expected = np.zeros((ranks, ranks), int)
        for rank, share in enumerate(script("plan_rows").shares(batch, ranks)):
            rows = {row for node in set(share.ravel().tolist()) for row in matrix[[node]].indices.tolist()}
            for row in rows:
                expected[rank, row // block] += 1
        np.testing.assert_array_equal(script("plan_rows").requested(matrix, batch, ranks), expected)


def test_without_sharing_a_triplet_names_the_mean_bags_of_its_nodes(script):
    rows = script("plan_rows")
    graph = synthetic(500, degree=5, classes=1)
    most = rows.unshared(rows.Shape.of(graph))
    assert most[0] == pytest.approx(60)
    degree = np.diff(graph.adjacency.indptr)
    powers = degree**0.75
    by_hand = degree[degree > 0].mean() + (degree**2).sum() / degree.sum() + (powers * degree).sum() / powers.sum()
    assert most[1] == pytest.approx(by_hand, rel=1e-3)


@pytest.mark.parametrize("triplets", [256, 2_000])
def test_rows_expected_from_degrees_are_near_the_counted_ones(script, triplets):
    rows = script("plan_rows")
    for graph in (synthetic(20_000, classes=1), rows.power_law_graph(20_000)):
        counted = rows.counted(graph, TripletSampler(graph.adjacency), triplets)
        np.testing.assert_allclose(rows.expected(rows.Shape.of(graph), triplets), counted, rtol=0.15)


def test_shapes_without_a_graph_are_those_of_graphs(script):
    rows = script("plan_rows")
    for shape in (rows.even(20_000), rows.power_law(20_000)):
        assert shape.nodes.sum() == pytest.approx(20_000, rel=0.01)
        assert (shape.degrees * shape.nodes).sum() == pytest.approx(20 * 20_000, rel=0.01)
        assert (shape.frequencies * shape.attributes).sum() == pytest.approx(20 * 20_000, rel=0.01)
        assert shape.attributes.sum() == pytest.approx(2_000, rel=0.01)
    made = rows.expected(rows.Shape.of(rows.power_law_graph(20_000)), 1_000)
    np.testing.assert_allclose(rows.expected(rows.power_law(20_000), 1_000), made, rtol=0.15)


def test_copies_of_a_graph_share_nothing_more(script):
    rows = script("plan_rows")
    shape = rows.Shape.of(synthetic(1_000))
    many = shape.times(10**6, degree=2.0)
    assert many.nodes.sum() == 10**9
    assert rows.unshared(many)[1] == pytest.approx(2 * rows.unshared(shape)[1])
    found = rows.expected(many, 100)
    assert found.neighbour_rows / 100 == pytest.approx(rows.unshared(many)[1], rel=1e-3)


def test_hours_are_those_of_the_slower_of_network_and_computing(script):
    hours = script("plan_hours")
    one = {
        "nodes": 12_000_000,
        "ranks": 10,
        "by_range": 1_000.0,
        "spectral_bytes": 4.5e12,
        "per_triplet": {"lengths": 500.0},
    }
    sending = hours._hours(one, rate=1e9, gbit=8)  # 3.6e8 triplets of 1 kB at 1 GB/s
    assert sending == {
        "learned": pytest.approx(0.1), "learned_without_lengths": pytest.approx(0.05), "network_is_the_bound": True,
        "spectral_traffic": 1.25,
    }  # fmt: skip
    computing = hours._hours(one, rate=1e5, gbit=8)
    assert (computing["learned"], computing["network_is_the_bound"]) == (pytest.approx(1.0), False)


def test_the_speeds_are_those_that_were_measured(script):
    speeds = script("plan_hours").speeds()
    gpu = json.loads((FOLDER / "results" / "gpu.json").read_text())
    assert speeds["NVIDIA H200"]["triplets_per_second"] in [
        row["triplets_per_second"] for row in gpu["large"]["rows"] if row["batch"] == 65_536
    ]
    assert "1000000 nodes" in gpu["large"]["graph"]
    assert speeds["NVIDIA H200"]["nodes"] == speeds["2 cores"]["nodes"] == 1_000_000


def test_the_kept_text_is_made_from_the_kept_plan(script):
    kept = json.loads((FOLDER / "results" / "plan.json").read_text())
    assert script("plan_text").render(kept) == (FOLDER / "results" / "plan.txt").read_text()
    lines = script("plan").lines(kept)
    assert json.loads(lines) == kept
    assert lines == (FOLDER / "results" / "plan.json").read_text()
