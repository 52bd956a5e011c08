"""One, two and four ranks send arrays, sum over ranks and answer requests for rows."""

import numpy as np
import pytest

pytest.importorskip("torch")

from neural_brane.distributed.exchange import node_range, owners


def of_ranks(found, name, ranks):
    """Return the results of all ranks of a group."""
    return [dict(np.load(found / f"{name}-{ranks}-{rank}.npz")) for rank in range(ranks)]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_pieces_arrive_in_the_order_of_the_ranks(found, ranks):
    for rank, got in enumerate(of_ranks(found, "pieces", ranks)):
        expected = [[sender, rank] for sender in range(ranks) for _ in range(sender + rank)]
        np.testing.assert_array_equal(got["sent"], np.array(expected).reshape(-1, 2))
        np.testing.assert_array_equal(got["tensor"], got["sent"])
        assert got["flags"].dtype == bool
        np.testing.assert_array_equal(got["flags"], got["sent"][:, 1] % 2 == 0)
        np.testing.assert_array_equal(got["gathered"], np.repeat(np.arange(ranks), np.arange(ranks))[:, None] * [1, 1])


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_sums_have_one_order(found, ranks):
    total = np.zeros((2, 3))
    for rank in range(ranks):
        total += np.array([[1.0, 1e17, -1e17], [rank, 0.5, 2.0]]) * (rank + 1)
    for got in of_ranks(found, "pieces", ranks):
        np.testing.assert_array_equal(got["total"], total)
        np.testing.assert_array_equal(got["largest"], [ranks - 1, 0])
        np.testing.assert_array_equal(got["first"], [5.0])


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_answers_come_in_the_order_of_the_requests(found, cases, ranks):
    for rank, got in enumerate(of_ranks(found, "requests", ranks)):
        numbers = cases.requested(rank)
        np.testing.assert_array_equal(got["rows"], numbers[:, None] * np.array([1.0, 10.0]))
        np.testing.assert_array_equal(got["tensor_rows"], got["rows"])
        np.testing.assert_array_equal(got["lengths"], numbers % 3)
        np.testing.assert_array_equal(got["values"], np.repeat(numbers, numbers % 3))


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_values_sent_to_owners_arrive_in_the_order_of_the_requests(found, cases, ranks):
    for rank, got in enumerate(of_ranks(found, "requests", ranks)):
        rows = got["requested"]
        np.testing.assert_array_equal(got["returned"] // 100, rows)
        np.testing.assert_array_equal(owners(rows, cases.COUNT, ranks), np.full(len(rows), rank))
        senders = [
            sender
            for sender in range(ranks)
            for owner in owners(cases.requested(sender), cases.COUNT, ranks)
            if owner == rank
        ]
        np.testing.assert_array_equal(got["returned"] % 100, senders)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_owners_add_up_the_values_of_all_ranks(found, cases, ranks):
    total = np.zeros(cases.COUNT)
    for rank in range(ranks):
        once = np.unique(cases.requested(rank))
        total[once] += 10.0**rank * (once + 1)
    np.testing.assert_array_equal(np.concatenate([got["added"] for got in of_ranks(found, "requests", ranks)]), total)


@pytest.mark.parametrize(("count", "ranks"), [(0, 3), (3, 4), (8, 4), (9, 4), (10, 1), (5, 3)])
def test_ranges_cover_all_numbers_once(count, ranks):
    ranges = [node_range(count, rank, ranks) for rank in range(ranks)]
    assert [number for own in ranges for number in own] == list(range(count))
    whose = [rank for rank, own in enumerate(ranges) for _ in own]
    np.testing.assert_array_equal(owners(np.arange(count), count, ranks), whose)
