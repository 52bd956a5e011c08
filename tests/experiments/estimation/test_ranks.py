"""Test the estimate of one of several ranks: its memory by part, and the bytes that it sends in a step."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane import estimate, load, synthetic
from neural_brane.cli.app import app
from neural_brane.distributed.estimate import (
    PROGRAM_BYTES,
    BatchRows,
    count_rows,
    distinct_rows,
    expected_rows,
    row_bytes,
    shard_bytes,
    traffic_of,
)
from neural_brane.errors import ParameterError
from neural_brane.experiments.estimate import find_sizes
from neural_brane.files.graphs.shards import write_shards
from neural_brane.graph.memory import Sizes
from neural_brane.sampling.triplets import TripletSampler

MILLION = Sizes(nodes=1_000_000, edges=10_000_000, attributes=100_000, attribute_entries=20_000_000)


def by_sets(graph, triplets) -> BatchRows:
    """Return the same counts from sets, one node after another."""
    nodes = {int(node) for triplet in triplets for node in triplet}
    words = [set(graph.attributes[[node]].indices.tolist()) for node in nodes]
    friends = [set(graph.adjacency[[node]].indices.tolist()) for node in nodes]
    entries = [sum(len(bag) for bag in bags) for bags in (words, friends)]
    return BatchRows(len(triplets), len(nodes), *entries, len(set().union(*words)), len(set().union(*friends)))


@pytest.mark.parametrize("ranks", [1, 3, 8])
def test_rows_are_counted_as_sets_are(ranks):
    graph = synthetic(400, degree=6, attributes_per_node=20, seed=3)
    triplets = TripletSampler(graph.adjacency, seed=1).draw(0, 100)
    for part in np.array_split(triplets, ranks):
        assert count_rows(graph.adjacency, graph.attributes, part) == by_sets(graph, part)


def test_distinct_rows_are_in_order_and_named_by_the_bags():
    graph = load("stdlib")
    nodes = np.array([3, 7, 7])
    found = distinct_rows(graph.adjacency, nodes)
    assert found.tolist() == sorted(set(graph.adjacency[[3]].indices) | set(graph.adjacency[[7]].indices))


@pytest.mark.parametrize("triplets", [200, 5_000])
def test_sizes_foretell_the_rows_of_an_even_graph(triplets):
    graph = synthetic(20_000, classes=1)  # all attributes equally likely
    drawn = TripletSampler(graph.adjacency).draw(0, triplets)
    counted, expected = (
        count_rows(graph.adjacency, graph.attributes, drawn),
        expected_rows(Sizes.from_graph(graph), triplets),
    )
    np.testing.assert_allclose(expected, counted, rtol=0.05)


def test_a_rank_sends_what_others_ask_for_and_gradients_of_what_it_got():
    settings = {"dim": 150, "spectral_dim": 112, "attribute_dim": 28, "hidden": 38}
    assert row_bytes(settings) == (4 * 32, 4 * 16)  # rows are padded to whole cache lines
    rows = BatchRows(10, 20, 200, 100, attribute_rows=40, neighbour_rows=80)
    sent = traffic_of(rows, settings, 4)
    assert sent.rows == sent.gradients == 0.75 * (40 * 128 + 80 * 64)
    assert sent.ids == 0.75 * 8 * 120
    assert sent.lengths == 3 * 8 * 120  # a bag length per number, sent to three other ranks
    assert sent.layer == 2 * 0.75 * 4 * 38 * 39
    assert sent.graph > 0.75 * 4 * 300
    assert sum(traffic_of(rows, settings, 1)) == 0


def test_memory_of_a_rank_falls_with_their_number():
    one, four = (estimate(MILLION, ranks=ranks, room=10**11) for ranks in (1, 4))
    assert one.memory["program"] == four.memory["program"] == PROGRAM_BYTES
    assert four.memory["graph"] == shard_bytes(MILLION) / 4 == one.memory["graph"] / 4
    for moment in ("training", "vectors"):
        assert four.several.moments[moment]["tables"] == one.several.moments[moment]["tables"] / 4
    assert four.several.moments["training"]["tables"] == 250_000 * 64 + 25_000 * 128
    assert four.several.moments["vectors"]["vectors"] == 4 * 250_000 * 150
    assert four.output_bytes == one.output_bytes / 4
    assert four.peak < one.peak
    assert four.several.host == one.several.host
    assert four.seconds is None


def test_a_folder_of_parts_tells_its_sizes_unread(tmp_path):
    def refuse():
        raise AssertionError("the graph was read")

    graph = load("stdlib")
    write_shards(graph, tmp_path / "parts", 3)
    found, known = find_sizes(tmp_path / "parts", refuse).sizes, Sizes.from_graph(graph)
    assert (known.weighted, known.amounts) == (True, False)
    assert replace(found, text_bytes=0) == replace(known, text_bytes=0)
    mapped = sum(path.stat().st_size for path in (tmp_path / "parts").glob("part-*/*.npy"))
    assert shard_bytes(found) == pytest.approx(mapped, rel=0.01)
    shown = CliRunner().invoke(app, ["estimate", str(tmp_path / "parts"), "--ranks", "2", "--json"])
    assert json.loads(shown.stdout)["memory"]["graph"] == -(-shard_bytes(known) // 2)


def test_rows_are_counted_where_the_graph_is_there():
    graph = load("stdlib")
    found = estimate(graph, ranks=2, room=10**10, dim=32)
    settings = found.parameters
    sampler = TripletSampler(graph.adjacency, negative_power=0.75)
    share = -(-settings["batch_size"] // 2)
    assert found.several.counted
    assert found.several.batch == by_sets(graph, sampler.draw(0, share))._asdict()
    assert not estimate(Sizes.from_graph(graph), ranks=2, room=10**10, dim=32).several.counted


def test_a_graph_without_links_has_no_steps_to_count():
    graph = synthetic(50, seed=1)
    graph.adjacency.data[:] = 0
    graph.adjacency.eliminate_zeros()
    found = estimate(graph, ranks=2, room=10**10, dim=8)
    assert list(found.several.moments) == ["spectral products", "vectors"]
    assert sum(found.several.traffic.values()) == found.several.steps == 0


def test_what_does_not_fit_is_told_with_a_number_of_ranks_that_does():
    found = estimate(MILLION, ranks=2, room=1_000_000_000)
    assert not found.fits
    ranks = found.several.fitting_ranks
    assert ranks > 2
    assert estimate(MILLION, ranks=ranks, room=1_000_000_000).fits
    assert found.verdict == f"does not fit: 1.0 GB available here; ranks={ranks} would fit"
    none = estimate(MILLION, ranks=2, room=1_000_000)
    assert none.verdict.endswith("no number of ranks would fit")
    assert "enough for " in estimate(MILLION, ranks=2, room=10**11).verdict


def test_other_methods_and_no_ranks_at_all_are_refused():
    with pytest.raises(ParameterError, match=r"ranks=2.*deepwalk"):
        estimate(MILLION, "deepwalk", ranks=2)
    with pytest.raises(ParameterError, match="ranks=0"):
        estimate(MILLION, ranks=0)


def test_the_command_tells_of_one_rank():
    runner = CliRunner()
    shown = runner.invoke(app, ["estimate", "stdlib", "--ranks", "2"])
    assert shown.exit_code == 0
    for words in ("one of 2 ranks", "one copy of the graph", "time: not estimated"):
        assert words in shown.stdout
    kept = json.loads(runner.invoke(app, ["estimate", "stdlib", "--ranks", "2", "--json"]).stdout)
    assert kept["several"]["ranks"] == 2
    assert kept["peak"] == sum(kept["memory"].values())
    assert kept["several"]["traffic"]["rows"] > 0
