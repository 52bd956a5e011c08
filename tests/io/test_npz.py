from __future__ import annotations

import numpy as np
import pytest

from neural_brane.errors import GraphError
from neural_brane.graph import AttributedGraph
from neural_brane.io import read_graph, write_graph
from neural_brane.io.atomic import atomic


@pytest.mark.parametrize("compress", [False, True])
def test_a_graph_comes_back_the_same(small_graph, tmp_path, compress):
    path = tmp_path / "new" / "small.npz"
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
    with pytest.raises(GraphError, match=r"graphs are written as \.npz"):
        write_graph(small_graph, tmp_path / "small.txt")
    write_graph(small_graph, tmp_path / "small.npz")
    with pytest.raises(GraphError, match=r"\.npz files hold their own attributes; leave out a\.txt"):
        read_graph(tmp_path / "small.npz", attributes="a.txt")


def test_a_write_that_fails_leaves_what_was_there(tmp_path):
    target = tmp_path / "file.txt"
    target.write_text("old")

    def write_half() -> None:
        with atomic(target) as draft:
            assert draft.suffix == ".txt"
            draft.write_text("half")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_half()
    assert target.read_text() == "old"
    with atomic(target) as draft:
        draft.write_text("new")
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]
