import numpy as np

from neural_brane.sampling.tables import renumber, sample_neighbours


def rows(indptr, indices):
    return [set(part.tolist()) for part in np.split(indices, indptr[1:-1])]


def test_few_neighbours_are_all_taken(small_graph):
    nodes = np.array([3, 10, 0])  # kim, the second, has none
    indptr, found = sample_neighbours(small_graph.adjacency, nodes, 4, np.random.default_rng(0))
    adjacency = small_graph.adjacency
    assert rows(indptr, found) == [set(adjacency.indices[adjacency.indptr[u] : adjacency.indptr[u + 1]]) for u in nodes]


def test_of_many_neighbours_all_are_as_likely():
    from neural_brane import load

    adjacency = load("stdlib").adjacency
    hub = int(np.argmax(np.diff(adjacency.indptr)))
    theirs = adjacency.indices[adjacency.indptr[hub] : adjacency.indptr[hub + 1]]
    rng = np.random.default_rng(0)
    drawn = [sample_neighbours(adjacency, np.array([hub]), 5, rng) for _ in range(4000)]
    assert all(len(found) == 5 for _, found in drawn)
    seen, counts = np.unique(np.concatenate([found for _, found in drawn]), return_counts=True)
    np.testing.assert_array_equal(seen, theirs)
    expected = 20_000 / len(theirs)
    assert abs(counts - expected).max() < 6 * np.sqrt(expected)


def test_nodes_are_renumbered_once_in_order():
    distinct, (first, second) = renumber([np.array([[7, 2]]), np.array([2, 9, 9])], 10)
    assert distinct.tolist() == [2, 7, 9]
    assert first.tolist() == [[1, 0]]
    assert second.tolist() == [0, 2, 2]
