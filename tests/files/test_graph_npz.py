from __future__ import annotations

import re
import zipfile
from typing import Any

import numpy as np
import pytest

from neural_brane.errors import GraphError
from neural_brane.files.graphs.formats import read_graph, write_graph
from neural_brane.graph import AttributedGraph


@pytest.mark.parametrize("compress", [False, True])
def test_a_graph_comes_back_the_same(small_graph, tmp_path, compress):
    path = tmp_path / "small.npz"
    write_graph(small_graph, path, compress=compress)
    again = read_graph(path)
    assert again.digest() == small_graph.digest()
    assert again.name == "small"
    assert [file.name for file in path.parent.iterdir()] == ["small.npz"]


def test_without_labels_names_or_attributes(tmp_path):
    plain = AttributedGraph.from_edges([(0, 1), (1, 2)])
    write_graph(plain, tmp_path / "g.npz")
    again = read_graph(tmp_path / "g.npz")
    assert again.digest() == plain.digest()
    assert again.labels is None
    assert again.attributes.shape == (3, 0)


def test_other_kinds_of_numbers_are_converted_and_directions_merged(tmp_path):
    np.savez(
        tmp_path / "g.npz",
        adj_data=np.array([3, 1, 5], dtype=np.int8),
        adj_indices=np.array([1, 0, 1], dtype=np.int64),
        adj_indptr=np.array([0, 1, 3], dtype=np.uint16),
        adj_shape=(2, 2),
        labels=np.array([12, 7], dtype=np.int32),
    )
    graph = read_graph(tmp_path / "g.npz", self_loops="drop")
    assert graph.adjacency.toarray().tolist() == [[0, 3], [3, 0]]
    assert graph.adjacency.indices.dtype == graph.adjacency.indptr.dtype == np.int32
    assert graph.labels.tolist() == ["12", "7"]
    assert read_graph(tmp_path / "g.npz", duplicates="sum").adjacency.toarray().tolist() == [[0, 4], [4, 5]]


def test_other_suffixes_and_second_files_are_refused(small_graph, tmp_path):
    with pytest.raises(GraphError, match=r"small\.txt.*format"):
        write_graph(small_graph, tmp_path / "small.txt")
    write_graph(small_graph, tmp_path / "small.npz")
    with pytest.raises(GraphError, match=r"\.npz.*files"):
        read_graph(tmp_path / "small.npz", attributes="a.txt")


GOOD = {
    "adj_data": np.ones(2),
    "adj_indices": np.array([1, 0]),
    "adj_indptr": np.array([0, 1, 2]),
    "adj_shape": np.array([2, 2]),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"adj_data": None},
            "g.npz: array 'adj_data' is missing; found adj_indices, adj_indptr, adj_shape",
        ),
        ({"adj_shape": [2, 3]}, "g.npz: adjacency is 2 x 3; give a square matrix, one row per node"),
        (
            {"adj_shape": [4]},
            "g.npz: adj_shape is [4]; expected two whole numbers",
        ),
        ({"adj_shape": [3, 3]}, "g.npz: adj_indptr has 3 entries; expected rows + 1, 4"),
        (
            {"adj_data": np.ones((2, 1))},
            "g.npz: adj_data is float64 with shape (2, 1); expected a flat array",
        ),
        ({"adj_indices": [1.0, 0.0]}, "g.npz: adj_indices is float64 with shape (2,); expected a flat array"),
        (
            {"adj_data": np.ones(3)},
            "g.npz: adj_data has 3 entries, _indices 2, and _indptr ends at 2; expected",
        ),
        (
            {"adj_indptr": [0, 3, 2]},
            "g.npz: adj_indptr decreases or does not begin with 0",
        ),
        ({"adj_indices": [1, 2]}, "g.npz: adj_indices are outside the 2 columns; expected 0 to 1"),
        ({"adj_data": [1, -2]}, "g.npz: adjacency[1, 0] is -2.0"),
        ({"adj_data": [1, np.nan]}, "g.npz: adjacency[1, 0] is NaN; give finite numbers"),
        ({"adj_data": [0, 0]}, "g.npz: graph 'g' has 2 nodes, no edges and no attributes"),
        ({"ids": ["a", "a"]}, "g.npz: ids contain 'a' twice"),
        ({"ids": ["a"]}, "g.npz: adjacency is 2 x 2"),
        ({"labels": ["x"]}, "g.npz: labels have shape (1,) for 2 nodes; give one label per node"),
        ({"attr_data": [1.0]}, "g.npz: array 'attr_indices' is missing"),
        (
            {"labels": np.array(["x", None])},
            "g.npz: array 'labels' contains Python objects",
        ),
    ],
)
def test_npz_file(tmp_path, read_malformed, change: dict[str, Any], message):
    arrays = {key: value for key, value in (GOOD | change).items() if value is not None}
    np.savez(tmp_path / "draft.npz", **arrays)
    content = (tmp_path / "draft.npz").read_bytes()
    assert read_malformed({"g.npz": content}).startswith(message)


def test_other_files_named_npz_are_refused(tmp_path, read_malformed):
    for content in ("0 1\n", ""):
        assert re.match(r"g\.npz: .*not an \.npz file.*adj_data", read_malformed({"g.npz": content}))
    np.save(tmp_path / "one.npy", np.ones(3))
    one = (tmp_path / "one.npy").read_bytes()
    assert re.match(r"g\.npz: .*one array.*adj_data", read_malformed({"g.npz": one}))
    np.savez_compressed(tmp_path / "whole.npz", **GOOD)
    cut = bytearray((tmp_path / "whole.npz").read_bytes())
    with zipfile.ZipFile(tmp_path / "whole.npz") as archive:
        start = archive.getinfo("adj_indices.npy").header_offset + 60
    cut[start : start + 20] = bytes(20)
    assert re.match(r"g\.npz: .*damaged.*'adj_indices'", read_malformed({"g.npz": bytes(cut)}))


@pytest.mark.parametrize("bit", [0x20, 0x01], ids=["patched", "encrypted"])
def test_damaged_members_of_the_archive_are_refused(bit, tmp_path, read_malformed):
    np.savez(tmp_path / "whole.npz", **GOOD)
    content = bytearray((tmp_path / "whole.npz").read_bytes())
    content[6] |= bit  # the flags of the first member, here and in the directory at the end
    content[content.index(b"PK\x01\x02") + 8] |= bit
    assert re.match(r"g\.npz: .*damaged", read_malformed({"g.npz": bytes(content)}))
