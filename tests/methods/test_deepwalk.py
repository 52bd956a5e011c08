from pathlib import Path

import numpy as np
import pytest

from neural_brane import DeepWalk, Node2Vec, classify, load
from neural_brane.errors import ParameterError
from neural_brane.sampling.walks import WalkSampler

WALKS = Path(__file__).parent / "data" / "pecanpy_walks.npz"  # made by scripts/build_pecanpy_walks.py


@pytest.fixture(scope="module")
def stdlib():
    return load("stdlib")


@pytest.fixture(scope="module")
def pecanpy():
    """PecanPy's walks on stdlib: "first" for first order, "second" with p = 0.25 and q = 4."""
    with np.load(WALKS) as file:
        return {order: file[order].astype(np.int32) for order in file.files}


def gensim_vectors(walks, nodes, dim, window, epochs):
    Word2Vec = pytest.importorskip("gensim.models").Word2Vec  # gensim has no wheels for the newest Pythons
    sentences = [[str(node) for node in walk if node >= 0] for walk in walks]
    model = Word2Vec(
        sentences, sg=1, hs=0, negative=5, vector_size=dim, window=window, epochs=epochs, sample=0, min_count=0,
        workers=1, seed=1,
    )  # fmt: skip
    return model.wv[[str(node) for node in range(nodes)]]


def our_vectors(walks, nodes, dim, window, epochs):
    method = DeepWalk(dim=dim, walk_length=walks.shape[1], window=window, epochs=epochs)
    return method.learn(lambda first, count: walks[first : first + count], len(walks), nodes, seed=1)


def cosines(vectors, pairs):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return (unit[pairs[:, 0]] * unit[pairs[:, 1]]).sum(axis=1)


@pytest.mark.parametrize("order", ["first", "second"])
def test_on_pecanpys_walks_it_learns_what_gensim_does(stdlib, pecanpy, order):
    linked = np.flatnonzero(np.diff(stdlib.adjacency.indptr))
    pairs = np.random.default_rng(0).choice(linked, (20_000, 2))
    settings = {"nodes": len(stdlib), "dim": 32, "window": 5, "epochs": 3}
    ours, theirs = our_vectors(pecanpy[order], **settings), gensim_vectors(pecanpy[order], **settings)
    assert np.corrcoef(cosines(ours, pairs), cosines(theirs, pairs))[0, 1] > 0.85  # two seeds of gensim: 0.94, 0.90
    scores = [
        classify(vectors, stdlib.labels, train=[0.7], as_they_are=True).at(0.7).macro.mean for vectors in (ours, theirs)
    ]
    assert abs(scores[0] - scores[1]) < 0.05


def shares(walks, adjacency):
    """Return how often a step goes back, to a neighbour of the previous node, or farther away."""
    before, after = walks[:, :-2].ravel(), walks[:, 2:].ravel()
    before, after = before[after >= 0], after[after >= 0]
    back = before == after
    near = (adjacency[before, after] > 0) & ~back
    return np.array([back.mean(), near.mean(), (~back & ~near).mean()])


@pytest.mark.parametrize(("order", "p", "q"), [("first", 1.0, 1.0), ("second", 0.25, 4.0)])
def test_walks_turn_back_and_away_as_often_as_pecanpys(stdlib, pecanpy, order, p, q):
    theirs = pecanpy[order]
    ours = WalkSampler(stdlib.adjacency, length=theirs.shape[1], p=p, q=q, seed=2).draw(0, len(theirs))
    adjacency = stdlib.adjacency.toarray()
    np.testing.assert_allclose(shares(ours, adjacency), shares(theirs, adjacency), atol=0.01)
    visits = [np.bincount(walks[walks >= 0], minlength=len(stdlib)) / (walks >= 0).sum() for walks in (ours, theirs)]
    assert np.corrcoef(*visits)[0, 1] > 0.99


@pytest.mark.parametrize(("method", "walks", "length"), [(DeepWalk, 80, 40), (Node2Vec, 10, 80)])
def test_the_defaults_are_those_of_each_methods_own_paper(method, walks, length):
    model = method()
    assert (model.walks_per_node, model.walk_length, model.window) == (walks, length, 10)
    assert model.learning_rate == 0.025


def test_with_p_and_q_one_node2vec_is_deepwalk(small_graph):
    plain = DeepWalk(dim=4, walks_per_node=2, walk_length=9, seed=3).fit_transform(small_graph)
    second = Node2Vec(dim=4, walks_per_node=2, walk_length=9, p=1.0, q=1.0, seed=3).fit_transform(small_graph)
    np.testing.assert_array_equal(plain.vectors, second.vectors)


@pytest.mark.parametrize("method", [DeepWalk, Node2Vec])
def test_circles_part_and_a_lonely_node_stays_small(small_graph, method):
    vectors = method(dim=8, walks_per_node=200, learning_rate=0.1, seed=0).fit_transform(small_graph).vectors
    lonely = small_graph.ids.tolist().index("kim")
    assert np.abs(vectors[lonely]).max() <= 0.5 / 8
    town, club = small_graph.labels == "town", small_graph.labels == "club"
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    likeness = unit @ unit.T
    assert likeness[np.ix_(town, town)].mean() > likeness[np.ix_(town, club)].mean() + 0.5


def test_progress_counts_walks_to_the_end(small_graph):
    seen = []
    DeepWalk(dim=4, walks_per_node=3, epochs=2, seed=0, progress=seen.append).fit(small_graph)
    assert (seen[-1].done, seen[-1].total, seen[-1].unit, seen[-1].loss) == (72, 72, "walks", None)
    assert [step.epoch for step in seen] == sorted(step.epoch for step in seen)


def test_a_rate_that_makes_it_diverge_is_named(small_graph):
    with pytest.raises(ParameterError, match=r"training diverged.*learning_rate=1e\+30"):
        DeepWalk(dim=4, learning_rate=1e30, seed=0).fit(small_graph)


@pytest.mark.parametrize(("method", "expected"), [(DeepWalk, 0.6988), (Node2Vec, 0.6864)])
def test_golden_value(stdlib, method, expected):
    vectors = method(dim=32, walks_per_node=10, walk_length=40, seed=0).fit_transform(stdlib).vectors
    assert classify(vectors, stdlib.labels, train=[0.7], as_they_are=True).at(0.7).macro.mean == pytest.approx(
        expected, abs=0.01
    )
