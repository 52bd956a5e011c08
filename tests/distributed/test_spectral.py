"""One, two and four ranks compute the spectral part of one process."""

import numpy as np
import pytest

pytest.importorskip("torch")

from neural_brane.linalg.eigenvectors import REPORTS
from neural_brane.linalg.weights import distinguishes_nodes
from neural_brane.methods.neural_brane.parts import spectral_part

NAMES = [
    "links and attributes", "many rounds", "links alone", "links as identity", "attributes alone",
    "averages without links", "no amounts, no loops", "one amount", "two amounts", "three nodes", "planted classes",
    "stdlib", "citeseer",
]  # fmt: skip
SEPARATED = 0.01  # distance of a squared singular value to the next, as a share of it


@pytest.fixture(scope="module")
def one_process(cases):
    """The same cases in one process."""
    return {name: spectral_part(case.graph, case.all_settings(), 7) for name, case in cases.make_cases().items()}


def separated(values):
    """Return the directions whose values lie so far apart that rounding does not mix them."""
    gaps = np.abs(np.diff(values, prepend=np.inf, append=0))
    return np.flatnonzero((values > 0) & (np.minimum(gaps[:-1], gaps[1:]) > SEPARATED * values))


def vectors_of(found, name, ranks):
    files = [np.load(found / f"spectral-{ranks}-{rank}.npz") for rank in range(ranks)]
    return [
        {key: file[f"{name}/{key}"] for key in ("vectors", "values", "apart", "reports", "rounds")} for file in files
    ]


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("name", NAMES)
def test_own_rows_are_those_of_one_process(found, cases, one_process, name, ranks):
    if name not in one_process:
        pytest.skip("set NEURAL_BRANE_DATA to a folder of the published datasets to run this test")
    vectors, values = one_process[name]
    got = vectors_of(found, name, ranks)
    block = -(-len(vectors) // ranks)
    assert [len(one["vectors"]) for one in got] == [
        len(vectors[rank * block : (rank + 1) * block]) for rank in range(ranks)
    ]
    together = np.concatenate([one["vectors"] for one in got])
    for one in got:
        np.testing.assert_allclose(one["values"], values, rtol=1e-4, atol=1e-6 * values[0])
    columns = separated(values)
    assert len(columns) >= min(2, len(vectors) - 1)
    errors = np.linalg.norm(together - vectors, axis=0) / np.maximum(np.linalg.norm(vectors, axis=0), 1e-30)
    assert errors[columns].max() < 1e-4
    last = columns[-1] + 1  # directions up to here span the same space, even if two of their values are close
    products = vectors[:, :last] @ vectors[:, :last].T
    np.testing.assert_allclose(
        together[:, :last] @ together[:, :last].T, products, rtol=0, atol=1e-4 * np.abs(products).max()
    )


def test_one_rank_gives_the_bits_of_one_process(found, one_process):
    for name, (vectors, values) in one_process.items():
        (alone,) = vectors_of(found, name, 1)
        np.testing.assert_array_equal(alone["vectors"], vectors, err_msg=name)
        np.testing.assert_allclose(alone["values"], values, err_msg=name)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_tables_of_tensors_give_the_same(found, one_process, ranks):
    vectors, values = one_process["many rounds"]
    got = [np.load(found / f"tensors-{ranks}-{rank}.npz") for rank in range(ranks)]
    together = np.concatenate([one["vectors"] for one in got])
    np.testing.assert_allclose(got[0]["values"], values, rtol=1e-4)
    columns = separated(values)
    errors = np.linalg.norm(together - vectors, axis=0) / np.linalg.norm(vectors, axis=0)
    assert len(columns) >= 2
    assert errors[columns].max() < 1e-4


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_every_rank_knows_the_facts_of_the_whole_graph(found, cases, ranks):
    for name, case in cases.make_cases().items():
        for one in vectors_of(found, name, ranks):
            assert bool(one["apart"]) == distinguishes_nodes(case.graph.attributes), name
            assert one["reports"] == REPORTS, name


def test_many_rows_of_other_ranks_come_in_several_rounds(found):
    assert [int(one["rounds"]) for one in vectors_of(found, "many rounds", 4)] == [3] * 4
    assert [int(one["rounds"]) for one in vectors_of(found, "links and attributes", 4)] == [1] * 4


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_all_ranks_refuse_a_graph_whose_nodes_are_all_the_same(found, ranks):
    for rank in range(ranks):
        message = str(np.load(found / f"refused-{ranks}-{rank}.npz")["message"])
        assert "no attribute" in message


def test_a_rank_keeps_its_share_of_every_table_only(found):
    alone = np.load(found / "held-1-0.npz")["peak"]
    whole = 4 * 10_000 * 128  # the bytes of one table
    assert alone > 2 * whole  # so most of the measured memory belongs to tables
    for rank in range(4):
        assert np.load(found / f"held-4-{rank}.npz")["peak"] < 0.4 * alone
