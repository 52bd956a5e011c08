from uuid import UUID

import numpy as np
import pytest

from neural_brane.errors import EmbeddingError, GraphError
from neural_brane.graph.ids import MANY, as_ids, encode, locate, repeated


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([3, 1], np.array([3, 1])),
        (np.array([3, 1], dtype=np.uint8), np.array([3, 1])),
        (["b", 1], np.array(["b", "1"])),
        (np.array([1, 2], dtype=object), np.array([1, 2])),
        (np.array([1, 2], dtype=np.int8), np.array([1, 2])),
        (np.array([1, 2], dtype=">i4"), np.array([1, 2])),
        (np.arange(6)[::2], np.array([0, 2, 4])),
        (np.array([2**63 + 1, 7], dtype=np.uint64), np.array(["9223372036854775809", "7"])),
        ([2**63, -1], np.array(["9223372036854775808", "-1"])),
        (np.array([b"a", b"b"]), np.array(["a", "b"])),
        ([UUID(int=1)], np.array(["00000000-0000-0000-0000-000000000001"])),
        ([], np.array([], dtype=np.int64)),
    ],
)
def test_names_become_int64_or_strings(values, expected):
    found = as_ids(values)
    np.testing.assert_array_equal(found, expected)
    assert found.dtype.kind == expected.dtype.kind
    assert found.dtype.kind == "U" or found.dtype == np.int64


def test_other_names_raise_the_given_error():
    with pytest.raises(GraphError, match=r"edges.*1"):
        as_ids(np.array([0.5]), what="edges")
    with pytest.raises(EmbeddingError, match=r"ids.*shape \(1, 1\)"):
        as_ids([["a"]], error=EmbeddingError)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", None], r"ids\[1\] is missing \(None\)"),
        (["a", float("nan")], r"ids\[1\] is missing \(nan\)"),
        ([1, float("nan")], r"ids\[1\] is missing \(nan\)"),
        (np.array(["a", np.datetime64("NaT")], dtype=object), r"ids\[1\] is missing \(NaT\)"),
        (np.array([1.0, np.nan]), "ids.*float64.*missing"),
        ([1, True], r"ids\[1\] is True, a bool"),
        (["a", 1.5], r"ids\[1\] is 1\.5, a float"),
        (np.array([True]), "ids.*bool"),
        (np.ma.array([1, 2], mask=[False, True]), "ids: 1 entries are masked"),
        (np.array([1j]), "ids.*complex128"),
        (["a", "a\0"], r"ids\[1\] is 'a\\x00'.*NUL"),
        (["\ud800"], "name.*UTF-8"),
        (np.array([b"\xff"]), "ids are bytes that are not UTF-8"),
    ],
)
def test_invalid_names_are_refused_with_their_position(values, message):
    with pytest.raises(GraphError, match=message):
        as_ids(values)


@pytest.mark.parametrize(
    ("values", "codes", "distinct"),
    [
        (np.array([9, 2, 9, 5]), [2, 0, 2, 1], [2, 5, 9]),
        (np.array([10**15, -3, 10**15]), [1, 0, 1], [-3, 10**15]),
        (np.array(["z", "b", "z"]), [0, 1, 0], ["z", "b"]),
    ],
)
def test_values_are_numbered(values, codes, distinct):
    found, names = encode(values)
    assert found.tolist() == codes
    assert names.tolist() == distinct


def test_integers_are_found_under_the_strings_that_spell_them():
    assert locate(np.array(["7", "x"]), np.array([7, 8])).tolist() == [0, -1]
    assert locate(np.array([7, 8]), np.array(["8", "08"])).tolist() == [1, -1]


def test_an_id_that_occurs_twice_is_named():
    assert repeated(np.array([1, 2, 3])) is None
    assert repeated(np.array([3, 1, 3])) == 3
    assert repeated(np.array(["a", "b", "b"])) == "b"
    many = np.array([f"ab{at}" for at in range(MANY + 1)])
    assert repeated(many) is None
    many[7] = many[-1]
    assert repeated(many) == many[-1]
    assert repeated(np.array([], dtype=np.int64)) is None
