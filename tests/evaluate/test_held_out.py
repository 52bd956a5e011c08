from dataclasses import replace

import numpy as np
import pytest

from neural_brane import load
from neural_brane.errors import EmbeddingError, GraphError, ParameterError
from neural_brane.evaluate import HeldOutEdges, hold_out_edges
from neural_brane.evaluate.link import draw_non_edges, edge_keys, keys_of
from neural_brane.files.graphs.formats import read_graph, write_graph
from neural_brane.graph import AttributedGraph


@pytest.fixture(scope="module")
def graph():
    return load("stdlib")


@pytest.fixture(scope="module")
def held_out(graph):
    return hold_out_edges(graph, share=0.2, seed=3)


def test_the_training_graph_has_no_held_out_edge_in_either_direction(graph, held_out):
    for u, v in held_out.positives:
        assert graph.adjacency[u, v] > 0
        assert held_out.graph.adjacency[u, v] == held_out.graph.adjacency[v, u] == 0
    back = held_out.graph.adjacency.tolil()
    for u, v in held_out.positives:
        back[u, v] = back[v, u] = graph.adjacency[u, v]
    assert (back.tocsr() != graph.adjacency).nnz == 0
    assert held_out.graph.edges == graph.edges - len(held_out.positives)


def test_negatives_are_distinct_pairs_of_two_nodes_that_never_had_an_edge(graph, held_out):
    assert len(held_out.negatives) == len(held_out.positives)
    assert (held_out.negatives[:, 0] < held_out.negatives[:, 1]).all()
    keys = keys_of(held_out.negatives, len(graph))
    assert len(np.unique(keys)) == len(keys)
    assert not np.isin(keys, edge_keys(graph)).any()


def test_a_leaked_edge_is_refused(graph, held_out):
    with pytest.raises(GraphError, match=r"552.*552.*edges"):
        replace(held_out, graph=graph)
    with pytest.raises(GraphError, match=r"1 of the 1 negatives.*edges"):
        replace(held_out, negatives=np.argwhere(held_out.graph.adjacency.todense())[:1, ::-1])


def test_attributes_labels_and_other_edges_are_kept(small_graph):
    found = hold_out_edges(small_graph, share=0.3)
    assert found.graph.adjacency[0, 0] == 1.0  # ann's self-loop is never held out
    assert len(found.positives) == 4
    assert found.graph.ids is small_graph.ids
    assert found.graph.attributes is small_graph.attributes


def test_the_seed_decides_the_edges(graph, held_out):
    again, other = (hold_out_edges(graph, share=0.2, seed=seed) for seed in (3, 4))
    np.testing.assert_array_equal(again.positives, held_out.positives)
    np.testing.assert_array_equal(again.negatives, held_out.negatives)
    assert not np.array_equal(other.positives, held_out.positives)
    assert not np.array_equal(other.negatives, held_out.negatives)


@pytest.mark.parametrize("nodes", [5, 40])
def test_every_pair_without_an_edge_is_equally_likely(nodes):
    # With five nodes all pairs are listed; with forty, pairs are drawn until there are enough.
    taken = keys_of(np.array([[0, 1], [2, 3]]), nodes)
    count = np.zeros((nodes, nodes))
    for seed in range(3000):
        low, high = draw_non_edges(taken, nodes, 2, np.random.default_rng(seed)).T
        count[low, high] += 1
    assert count[0, 1] == count[2, 3] == np.tril(count).sum() == 0
    drawn = count[np.triu_indices(nodes, 1)]
    expected = 6000 / (len(drawn) - 2)
    assert np.abs(drawn[drawn > 0] - expected).max() < 6 * np.sqrt(expected)
    assert (drawn > 0).sum() == len(drawn) - 2


def test_files_keep_the_pairs_and_the_digest(graph, held_out, tmp_path):
    write_graph(held_out.graph, tmp_path / "train.npz")
    held_out.save(tmp_path / "pairs.npz")
    again = HeldOutEdges.load(tmp_path / "pairs.npz")
    np.testing.assert_array_equal(again.positives, held_out.positives)
    np.testing.assert_array_equal(again.negatives, held_out.negatives)
    np.testing.assert_array_equal(edge_keys(again.graph), edge_keys(held_out.graph))
    assert again.graph.ids.tolist() == graph.ids.tolist()
    assert again.full_digest == graph.digest()
    assert again.training_digest == read_graph(tmp_path / "train.npz").digest()


def test_vectors_that_saw_the_edges_are_refused(graph, held_out):
    assert held_out.check_unseen({"data": {"digest": held_out.graph.digest()}})
    assert not held_out.check_unseen({})
    with pytest.raises(EmbeddingError, match="full graph"):
        held_out.check_unseen({"data": {"digest": graph.digest()}})
    with pytest.raises(EmbeddingError, match="another graph"):
        held_out.check_unseen({"data": {"digest": "0" * 16}})


def test_invalid_input_is_described(graph, held_out, tmp_path):
    for share in (0, 1, 1e-9):
        with pytest.raises(ParameterError, match=f"share={share} .*edges"):
            hold_out_edges(graph, share=share)
    with pytest.raises(ParameterError, match="seed=-1"):
        hold_out_edges(graph, seed=-1)
    full = AttributedGraph.from_sparse(np.ones((6, 6)) - np.eye(6))
    with pytest.raises(GraphError, match=r"4 pairs.*0"):
        hold_out_edges(full, share=0.3)
    with pytest.raises(GraphError, match=r"pairs\.txt.*format"):
        held_out.save(tmp_path / "pairs.txt")
    with pytest.raises(GraphError, match=r"gone\.npz.*file"):
        HeldOutEdges.load(tmp_path / "gone.npz")
    write_graph(graph, tmp_path / "graph.npz")
    with pytest.raises(GraphError, match=r"graph\.npz.*file"):
        HeldOutEdges.load(tmp_path / "graph.npz")
    (tmp_path / "broken.npz").write_text("broken")
    with pytest.raises(GraphError, match=r"broken\.npz.*file"):
        HeldOutEdges.load(tmp_path / "broken.npz")
