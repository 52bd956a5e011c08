"""Compiled numbering and scattering give the same results as plain code, on any number of threads."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from neural_brane.graph.adjacency import Rules, assemble
from neural_brane.graph.ids import encode
from neural_brane.graph.numbering import Numbering, names_in_bytes
from neural_brane.graph.scatter import scatter_edges

WORDS = ["", "a", "aa", "b" * 7, "b" * 8, "c" * 15, "c" * 16, "d" * 17, "é", "日本語の名前です", "x" * 200, "🙂" * 5]


@pytest.fixture(scope="module")
def names() -> list[str]:
    random = np.random.default_rng(0)
    drawn = [f"user-{at:06d}" for at in random.integers(0, 3000, 8000)]
    long = [f"{'0' * 40}{at}" for at in random.integers(0, 300, 2000)]
    return [*drawn[:4000], *WORDS, *long, *WORDS, *drawn[4000:]]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("block", [100, 5000, 100_000])
def test_names_are_numbered_by_first_appearance(names, threads, block):
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


def test_names_with_equal_hashes_get_different_numbers(monkeypatch):
    """If two long names have the same key, their bytes are compared."""
    made = []

    def one_key(names, keys, sizes, piece):
        first, last, thread = piece
        keys[first:last] = np.array([[7, np.uint64(255) << np.uint64(56)]], np.uint64)
        made.append(last - first)
        from neural_brane.graph.numbering import BITS, mix

        sizes[thread, int(mix(*keys[first]) >> BITS)] += last - first

    monkeypatch.setattr("neural_brane.graph.numbering.make_keys", one_key)
    numbering = Numbering()
    long = ["p" * 20, "q" * 20, "p" * 20, "q" * 21]
    numbering.add(names_in_bytes(pl.Series(long)))
    numbering.add(names_in_bytes(pl.Series(long[::-1])))
    codes, ids = numbering.finish()
    assert made == [4, 4]
    assert ids.tolist() == ["p" * 20, "q" * 20, "q" * 21]
    assert codes.tolist() == [0, 1, 0, 2, 2, 0, 1, 0]


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
    add, loops = duplicates == "sum", self_loops == "keep"
    found = scatter_edges(ends, weights, 70, add=add, loops=loops, threads=threads)
    for large in (assemble(ends, weights, 70, rules, large=1), found):
        assert large.has_canonical_format
        for part in ("indptr", "indices", "data"):
            np.testing.assert_array_equal(getattr(plain, part), getattr(large, part))
            assert getattr(plain, part).dtype == getattr(large, part).dtype
