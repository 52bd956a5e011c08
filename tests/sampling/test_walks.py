import numpy as np
import pytest
from scipy import sparse, stats

from neural_brane import AttributedGraph
from neural_brane.kernels import cpu
from neural_brane.sampling.walks import WalkSampler


def weighted_graph() -> sparse.csr_array:
    """Seven nodes in two triangles and a tail, with weights, a self-loop at 0 and node 6 alone."""
    edges = [(0, 0, 2.0), (0, 1, 1.0), (0, 2, 3.0), (1, 2, 0.5), (2, 3, 1.0), (3, 4, 2.0), (2, 4, 1.5), (4, 5, 1.0)]
    dense = np.zeros((7, 7), np.float32)
    for u, v, weight in edges:
        dense[u, v] = dense[v, u] = weight
    return sparse.csr_array(dense)


def transition(adjacency: np.ndarray, before: int, node: int, p: float, q: float) -> np.ndarray:
    """Return the probabilities of node2vec's next node, by its definition."""
    away = np.where(adjacency[before] > 0, 1.0, 1 / q)
    away[before] = 1 / p
    chances = adjacency[node] * away
    return chances / chances.sum()


def assert_drawn_from(counts: np.ndarray, chances: np.ndarray) -> None:
    assert not counts[chances == 0].any()
    possible = chances > 0
    if possible.sum() > 1:
        assert stats.chisquare(counts[possible], chances[possible] * counts.sum()).pvalue > 1e-4


@pytest.mark.parametrize("equal", [False, True])
def test_first_order_steps_follow_the_weights(equal):
    matrix = weighted_graph()
    if equal:
        matrix.data[:] = 1
    dense = matrix.toarray().astype(np.float64)
    walks = WalkSampler(matrix, length=20, seed=3).draw(0, 7000)
    steps = np.zeros((7, 7))
    here, there = walks[:, :-1].ravel(), walks[:, 1:].ravel()
    np.add.at(steps, (here[there >= 0], there[there >= 0]), 1)
    for node in range(6):
        assert_drawn_from(steps[node], dense[node] / dense[node].sum())


@pytest.mark.parametrize(("p", "q"), [(0.25, 4.0), (4.0, 0.25), (1.0, 0.5), (2.0, 1.0), (0.5, 0.5)])
def test_second_order_steps_follow_the_exact_chances(p, q):
    matrix = weighted_graph()
    dense = matrix.toarray().astype(np.float64)
    walks = WalkSampler(matrix, length=20, p=p, q=q, seed=4).draw(0, 7000)
    walks = walks[walks[:, 1] >= 0]
    steps = np.zeros((7, 7, 7))
    np.add.at(steps, (walks[:, :-2].ravel(), walks[:, 1:-1].ravel(), walks[:, 2:].ravel()), 1)
    seen = np.argwhere(steps.sum(axis=2) > 0)
    assert len(seen) == matrix[:6].nnz
    for before, node in seen:
        assert_drawn_from(steps[before, node], transition(dense, before, node, p, q))


def test_the_first_step_of_a_second_order_walk_follows_the_weights():
    matrix = weighted_graph()
    walks = WalkSampler(matrix, length=2, p=0.1, q=10.0, seed=5).draw(0, 35_000)
    counts = np.bincount(walks[walks[:, 0] == 2, 1], minlength=7)
    assert_drawn_from(counts, matrix.toarray()[2].astype(np.float64) / matrix[[2]].sum())


@pytest.mark.parametrize("q", [1.0, 0.5])
def test_a_walk_is_the_same_whoever_asks_for_it(q):
    sampler = WalkSampler(weighted_graph(), length=9, q=q, seed=6)
    walks = sampler.draw(0, 50)
    with cpu.threads(1):
        np.testing.assert_array_equal(walks, sampler.draw(0, 50))
    np.testing.assert_array_equal(walks[17:30], sampler.draw(17, 13))
    assert not np.array_equal(walks, WalkSampler(weighted_graph(), length=9, q=q, seed=7).draw(0, 50))


def test_every_node_starts_one_walk_a_round_and_one_without_neighbours_ends_at_once():
    walks = WalkSampler(weighted_graph(), length=5, seed=0).draw(7, 7)
    assert sorted(walks[:, 0]) == list(range(7))
    assert walks[walks[:, 0] == 6].tolist() == [[6, -1, -1, -1, -1]]
    assert (walks[walks[:, 0] != 6] >= 0).all()


def test_steps_are_edges(small_graph: AttributedGraph):
    walks = WalkSampler(small_graph.adjacency, length=12, p=0.5, q=2.0, seed=1).draw(0, 60)
    here, there = walks[:, :-1].ravel(), walks[:, 1:].ravel()
    stepped = there >= 0
    assert (small_graph.adjacency.toarray()[here[stepped], there[stepped]] > 0).all()
