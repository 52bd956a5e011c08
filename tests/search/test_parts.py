"""A search in a folder of parts returns the answers of the merged vectors, and never loads all of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, PartError
from neural_brane.files.vectors.parts import KINDS, write_parts
from neural_brane.search.exact import BLOCK_ROWS, Exact, nearest_rows
from neural_brane.search.index import EmbeddingParts, check_belongs

NODES = 20_000


@pytest.fixture(scope="module")
def merged():
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((NODES, 6)).astype(np.float32)
    vectors[[3, 77]] = 0
    vectors[9] = vectors[19_000]  # ties are returned in the order of rows
    return Embedding(vectors, [f"n{at}" for at in rng.permutation(NODES)], {"method": "by hand"})


@pytest.fixture(scope="module", params=KINDS)
def folder(request, merged, tmp_path_factory):
    path = tmp_path_factory.mktemp("parts")
    write_parts(path, merged.ids, merged.vectors, parts=7, kind=request.param, provenance=merged.provenance)
    return path


def test_answers_are_those_of_the_merged_vectors(merged, folder):
    parts = EmbeddingParts(folder)
    asked = merged.ids[[0, 9, 3, 19_999, 2_857, 9]].tolist()
    assert parts.nearest(asked, k=12) == merged.nearest(asked, k=12)
    assert parts.nearest(asked[0]) == merged.nearest(asked[0])
    assert parts.nearest(asked, k=3, center=True) == merged.nearest(asked, k=3, center=True)
    vector = np.linspace(-1, 1, 6)
    assert parts.nearest(vector) == merged.nearest(vector)
    assert parts.similarity(asked[0], asked[1]) == merged.similarity(asked[0], asked[1])
    for options in ({"matrix": True}, {"center": True}):
        found = parts.similarity(asked, asked, **options)
        np.testing.assert_array_equal(found, merged.similarity(asked, asked, **options))
    np.testing.assert_array_equal(parts[asked[1]], merged[asked[1]])
    np.testing.assert_array_equal(parts[asked], merged.vectors[[merged.row(node) for node in asked]])
    assert (len(parts), parts.dim, parts.provenance) == (NODES, 6, merged.provenance)
    assert repr(parts) == repr(merged).replace("Embedding(", "EmbeddingParts(")


def test_exact_search_takes_rows_of_parts(merged, folder):
    parts = EmbeddingParts(folder, check=False)
    for threads in (1, 2):
        found = nearest_rows(parts.vectors, merged.vectors[:4], 5, np.arange(4), threads=threads)
        expected = nearest_rows(merged.vectors, merged.vectors[:4], 5, np.arange(4))
        np.testing.assert_array_equal(found.rows, expected.rows)
        np.testing.assert_array_equal(found.cosines, expected.cosines)


def test_a_search_reads_each_block_once_and_never_many_rows_at_a_time(merged, folder):
    parts = EmbeddingParts(folder, check=False)
    read = []

    @dataclass
    class Counting:
        stored: Any

        def __getitem__(self, rows):
            read.append(rows.stop - rows.start)
            return self.stored[rows]

    parts.vectors._parts = [Counting(one) for one in parts.vectors._parts]
    search = Exact(parts.vectors, threads=1)
    search.nearest(merged.vectors[:3], 10)
    assert sum(read) == NODES
    assert max(read) <= BLOCK_ROWS
    read.clear()
    parts.nearest(merged.ids[5].item())
    assert sum(read) == NODES + 1  # one more for the query itself
    assert max(read) <= BLOCK_ROWS


def test_unknown_nodes_and_wrong_arguments_are_refused(merged, folder):
    parts = EmbeddingParts(folder)
    with pytest.raises(EmbeddingError, match="node 'nn5'"):
        parts.nearest("nn5")
    with pytest.raises(EmbeddingError, match="node 5"):
        parts.nearest(5)
    with pytest.raises(EmbeddingError, match="node 'x'"):
        parts["x"]
    with pytest.raises(EmbeddingError, match=r"vector.*6"):
        parts.nearest([0.5, 0.5])
    with pytest.raises(EmbeddingError, match="k=0"):
        parts.nearest("n5", k=0)


def test_unusual_ids_are_found(tmp_path):
    ids = ["ä", "a b", "x\ty", "line\nbreak", "007", '"quoted"', "日本", "-1", "a,b", "NaN", "7"]
    vectors = np.random.default_rng(2).standard_normal((len(ids), 3)).astype(np.float32)
    write_parts(tmp_path, np.array(ids), vectors, parts=4)
    parts, merged = EmbeddingParts(tmp_path), Embedding(vectors, ids)
    assert [parts.nearest(node, k=20) for node in ids] == [merged.nearest(node, k=20) for node in ids]


def test_integers_are_ids_and_there_may_be_more_parts_than_nodes(tmp_path):
    vectors = np.eye(3, 5, dtype=np.float32) + 1
    write_parts(tmp_path, np.array([30, -10, 20]), vectors, parts=9)
    parts, merged = EmbeddingParts(tmp_path), Embedding(vectors, [30, -10, 20])
    assert parts.nearest([-10, 30]) == merged.nearest([-10, 30])


def test_parts_are_saved_as_the_merged_vectors_are(merged, folder, tmp_path):
    EmbeddingParts(folder, check=False).save(tmp_path / "one.npz")
    merged.save(tmp_path / "two.npz")
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


def test_opening_finds_damage_unless_the_check_is_off(merged, tmp_path):
    write_parts(tmp_path, merged.ids, merged.vectors, parts=2)
    with (tmp_path / "part-00001.npy").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x7f")
    with pytest.raises(PartError, match=r"part-00001\.npy: .*damaged"):
        EmbeddingParts(tmp_path)
    assert len(EmbeddingParts(tmp_path, check=False)) == NODES


def test_an_index_of_parts_is_that_of_the_merged_vectors(merged, folder, tmp_path):
    pytest.importorskip("faiss", reason="install faiss-cpu to build an index")
    parts = EmbeddingParts(folder)
    options = {"lists": 50, "recall": 0.5, "seed": 1, "threads": 1}
    built, expected = parts.index(**options), merged.index(**options)
    asked = merged.ids[::4000].tolist()
    assert built.nearest(asked) == expected.nearest(asked)
    check_belongs("i.faiss", built, parts.vectors, parts.ids)
    write_parts(tmp_path, merged.ids, -merged.vectors, parts=2)
    others = EmbeddingParts(tmp_path)
    with pytest.raises(EmbeddingError, match="other vectors"):
        check_belongs("i.faiss", built, others.vectors, others.ids)
    write_parts(tmp_path, merged.ids[::-1], merged.vectors, parts=2)
    others = EmbeddingParts(tmp_path)
    with pytest.raises(EmbeddingError, match="other nodes"):
        check_belongs("i.faiss", built, others.vectors, others.ids)
