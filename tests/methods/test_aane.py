import numpy as np
import pytest

from neural_brane import AANE, AttributedGraph, synthetic

GOLDEN = [0.625519, -0.400238, 0.495814, -0.147197]


def affinity(graph):
    profiles = graph.attributes.toarray().astype(float)
    profiles /= np.maximum(np.linalg.norm(profiles, axis=1, keepdims=True), 1e-12)
    return profiles @ profiles.T


def objective(graph, vectors, l2):
    """‖S − HHᵀ‖² + λ Σ w_uv ‖h_u − h_v‖, every edge in both directions."""
    apart = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    return ((affinity(graph) - vectors @ vectors.T) ** 2).sum() + l2 * (graph.adjacency.toarray() * apart).sum()


def textbook(graph, *, dim, l2, rho, epochs):
    """Dense AANE: S is formed, and each node's row solves a separate linear system."""
    similar, weights = affinity(graph), graph.adjacency.toarray().astype(float)
    np.fill_diagonal(weights, 0)
    values, axes = np.linalg.eigh(similar)
    vectors = axes[:, -dim:] * np.sqrt(values[-dim:])
    copy, gap = vectors.copy(), np.zeros_like(vectors)

    def turn(moving, fixed, anchor):
        rows = []
        for node, row in enumerate(moving):
            near = np.flatnonzero(weights[node])
            pull = l2 * weights[node, near] / np.linalg.norm(row - fixed[near], axis=1)
            system = 2 * fixed.T @ fixed + (pull.sum() + rho) * np.eye(dim)
            rows.append(np.linalg.solve(system, 2 * similar[node] @ fixed + pull @ fixed[near] + rho * anchor[node]))
        return np.array(rows)

    for _ in range(epochs):
        vectors = turn(vectors, copy, copy - gap)
        copy = turn(copy, vectors, vectors + gap)
        gap += vectors - copy
    return vectors


@pytest.mark.parametrize("l2", [0.5, 0.05])
def test_it_reaches_the_objective_of_a_dense_textbook_version(l2):
    graph = synthetic(200, seed=5)
    ours = AANE(dim=16, l2=l2, seed=0).fit_transform(graph).vectors.astype(float)
    theirs = textbook(graph, dim=16, l2=l2, rho=5.0, epochs=10)
    assert objective(graph, ours, l2) == pytest.approx(objective(graph, theirs, l2), rel=0.01)
    assert objective(graph, ours, l2) < 0.999 * objective(
        graph, AANE(dim=16, l2=0, seed=0).fit_transform(graph).vectors, l2
    )


def test_links_draw_neighbours_together(small_graph):
    loose, tight = (AANE(dim=4, l2=l2, seed=0).fit_transform(small_graph) for l2 in (0.0, 1.0))
    apart = [np.linalg.norm(e["dan"] - e["eve"]) for e in (loose, tight)]
    assert apart[1] < 0.5 * apart[0]


def test_without_attributes_there_is_nothing_to_learn(small_graph):
    bare = AttributedGraph.from_sparse(small_graph.adjacency)
    with pytest.warns(UserWarning, match=r"4.*4 columns"):
        assert not AANE(dim=4, seed=0).fit_transform(bare).vectors.any()


def test_golden_value(small_graph):
    vectors = AANE(dim=4, seed=0).fit_transform(small_graph).vectors
    np.testing.assert_allclose(vectors[0], GOLDEN, rtol=1e-3)
