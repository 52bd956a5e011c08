"""Compiled numbering and scattering give the same results as plain code, on any number of threads."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from neural_brane.graph.adjacency import Rules, assemble
from neural_brane.graph.ids import encode
from neural_brane.graph.numbering import HASHED, WORD, Numbering, Table, find, names_in_bytes, spell
from neural_brane.graph.scatter import scatter_edges

WORDS = ["", "a", "aa", "b" * 7, "b" * 8, "c" * 15, "c" * 16, "d" * 17, "é", "日本語の名前です", "x" * 200, "🙂" * 5]


@pytest.fixture(scope="module")
def names() -> list[str]:
    random = np.random.default_rng(0)
    drawn = [f"user-{at:06d}" for at in random.integers(0, 3000, 8000)]
    long = [f"{'0' * 40}{at}" for at in random.integers(0, 300, 2000)]
    return [*drawn[:4000], *WORDS, *long, *WORDS, *drawn[4000:]]


@pytest.mark.parametrize("block", [100, 5000, 100_000])
def test_names_are_numbered_by_first_appearance(names, block):
    numbering = Numbering(slots=4)
    for at in range(0, len(names), block):
        numbering.add(names_in_bytes(pl.Series(names[at : at + block])))
    codes, ids = numbering.finish()
    order = {name: at for at, name in enumerate(dict.fromkeys(names))}
    assert ids.tolist() == list(order)
    assert codes.tolist() == [order[name] for name in names]


def test_encode_gives_the_same_result_for_many_strings(names):
    few, many = encode(pl.Series(names)), encode(pl.Series(names), large=1)
    np.testing.assert_array_equal(few[0], many[0])
    np.testing.assert_array_equal(few[1], many[1])


def test_names_with_equal_hashes_get_different_numbers():
    """If two long names have the same key, their bytes are compared."""
    table = Table(np.zeros(16, WORD), np.zeros((8, 2), WORD), np.zeros(9, np.int64), np.zeros(200, np.uint8))
    made, unknown = np.full((4, 2), HASHED, WORD), np.zeros(4, np.bool_)
    long, codes, known = ["p" * 20, "q" * 20, "p" * 20, "q" * 21], np.empty(4, np.int32), 0
    for block, expected in ((long, [0, 1, 0, 2]), (long[::-1], [2, 0, 1, 0])):
        done, known = find(names_in_bytes(pl.Series(block)), table, (made, unknown), codes, known)
        assert (done, known, codes.tolist()) == (4, 3, expected)
    assert spell(table.text, table.ends[: known + 1]).tolist() == ["p" * 20, "q" * 20, "q" * 21]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("duplicates", ["max", "sum"])
@pytest.mark.parametrize("self_loops", ["keep", "drop"])
@pytest.mark.parametrize("threads", [1, 3])
def test_scattered_edges_equal_assembled_ones(weighted, duplicates, self_loops, threads):
    random = np.random.default_rng(1)
    ends = np.concatenate([random.integers(0, 50, (800, 2)), np.stack([np.zeros(60, int), np.arange(60)], axis=1)])
    ends = ends.astype(np.int32)
    weights = random.uniform(1e-3, 1e3, len(ends)).astype(np.float32) if weighted else None
    rules = Rules(duplicates, self_loops)
    plain = assemble(ends, weights, 70, rules)
    given = ends.copy()
    found = [assemble(ends, weights, 70, rules, large=1)]
    np.testing.assert_array_equal(ends, given)
    found += [scatter_edges(ends.copy(), weights, 70, rules, spend=spend, threads=threads) for spend in (False, True)]
    for large in found:
        assert large.has_canonical_format
        for part in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(plain, part), getattr(large, part))
            assert getattr(plain, part).dtype == getattr(large, part).dtype
