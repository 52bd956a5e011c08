"""Shards in memory and in a folder equal their graph; a damaged file is refused by name."""

import json

import numpy as np
import pytest
from scipy import sparse

from neural_brane import AttributedGraph
from neural_brane.errors import ShardError
from neural_brane.files.graphs.shards import MemoryShards, open_shards, write_shards


@pytest.fixture
def graph():
    edges = [("ann", "bob"), ("bob", "cid"), ("cid", "dee"), ("dee", "dee"), ("eve", "ann")]
    bags = {"ann": {"chess": 2.0}, "bob": {"chess": 1.0, "go": 0.5}, "eve": {"go": 1.0}}
    return AttributedGraph.from_edges(edges, weights=[1, 2, 1, 3, 1], attributes=bags)


@pytest.fixture
def plain():
    return AttributedGraph.from_edges([(1, 2), (2, 3), (3, 9)], attributes={1: ["a"], 9: ["a", "b"]})


def joined(shards):
    """Return the stacked matrices of all shards, and their ids."""
    parts = [shards.shard(number) for number in range(len(shards))]
    return (
        sparse.vstack([part.adjacency.matrix(shards.nodes) for part in parts]).tocsr(),
        sparse.vstack([part.attributes.matrix(shards.attributes) for part in parts]).tocsr(),
        np.concatenate([shards.ids(number) for number in range(len(shards))]),
    )


def assert_same(shards, graph):
    adjacency, attributes, ids = joined(shards)
    assert (adjacency != graph.adjacency).nnz == 0
    assert (attributes != graph.attributes).nnz == 0
    assert ids.tolist() == graph.ids.tolist()
    assert shards.attribute_names().tolist() == graph.attribute_names.tolist()
    assert (shards.nodes, shards.edges, shards.entries) == (len(graph), graph.edges, graph.attributes.nnz)


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
@pytest.mark.parametrize("which", ["graph", "plain"])
def test_parts_are_the_graph_in_memory_and_in_a_folder(which, parts, tmp_path, request):
    graph = request.getfixturevalue(which)
    shards = write_shards(graph, tmp_path / "parts", parts)
    assert_same(MemoryShards(graph, parts), graph)
    assert_same(open_shards(tmp_path / "parts"), graph)
    shards.check()
    assert [shards.shard(number).first for number in range(parts)] == shards.bounds[:-1].tolist()
    assert shards.shard(0).nodes == shards.bounds[1]


def test_entries_that_are_all_one_take_no_room(plain, graph, tmp_path):
    plainly, weighed = write_shards(plain, tmp_path / "a"), write_shards(graph, tmp_path / "b")
    assert plainly.shard(0).adjacency.data is plainly.shard(0).attributes.data is None
    assert weighed.shard(0).adjacency.data.dtype == np.float32
    assert not (tmp_path / "a/part-00000/adjacency.weights.npy").exists()


def test_arrays_have_the_kinds_that_the_format_states(graph, tmp_path):
    for shards in (write_shards(graph, tmp_path / "a", 2), MemoryShards(graph, 2)):
        for rows in (shards.shard(1).adjacency, shards.shard(1).attributes):
            assert (rows.indptr.dtype, rows.indices.dtype, rows.data.dtype) == (np.int64, np.int32, np.float32)
            assert rows.indptr[0] == 0


@pytest.mark.parametrize(
    "file",
    ["part-00001/adjacency.indices.npy", "part-00000/attributes.amounts.npy", "part-00001/ids.parquet"],
)
def test_a_damaged_file_is_refused_by_name(file, graph, tmp_path):
    shards = write_shards(graph, tmp_path / "parts", 2)
    path = tmp_path / "parts" / file
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    other = 1 - int(file[9])
    open_shards(tmp_path / "parts").check([other])
    with pytest.raises(ShardError, match=f"{path}: is damaged"):
        shards.check()
    path.write_bytes(content[:-1])
    with pytest.raises(ShardError, match=f"{path}: has .* cut off"):
        open_shards(tmp_path / "parts")
    path.unlink()
    with pytest.raises(ShardError, match=f"{path}: is missing"):
        open_shards(tmp_path / "parts")


def test_damaged_ids_are_refused_before_they_are_read(graph, tmp_path):
    shards = write_shards(graph, tmp_path / "parts", 2)
    path = tmp_path / "parts/part-00001/ids.parquet"
    path.write_bytes(bytes(len(path.read_bytes())))
    with pytest.raises(ShardError, match=r"ids\.parquet: is damaged"):
        shards.ids(1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda record: record.pop("bounds"), "'bounds' is missing"),
        (lambda record: record.update(version=2), "version 2"),
        (lambda record: record.update(format="x"), "format 'x'"),
        (lambda record: record.update(nodes=99), "contradict"),
        (lambda record: record.update(parts="two"), "'parts'.*int"),
        (lambda record: record["bounds"].append(None), "'bounds'.*list"),
        (lambda record: record["files"]["attributes.parquet"].pop("crc32"), "crc32"),
        (lambda record: record["files"].popitem(), "does not list"),
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(change, message, graph, tmp_path):
    write_shards(graph, tmp_path / "parts", 2)
    path = tmp_path / "parts/manifest.json"
    record = json.loads(path.read_text())
    del record["checksum"]  # earlier manifests have none
    change(record)
    path.write_text(json.dumps(record))
    with pytest.raises(ShardError, match=message):
        open_shards(tmp_path / "parts")
    path.write_text("{")
    with pytest.raises(ShardError, match="not JSON"):
        open_shards(tmp_path / "parts")
    path.unlink()
    with pytest.raises(ShardError, match=r"no manifest\.json"):
        open_shards(tmp_path / "parts")


def test_requests_that_make_no_sense_are_refused(graph, tmp_path):
    with pytest.raises(ShardError, match="nowhere: "):
        open_shards(tmp_path / "nowhere")
    for parts in (0, 6):
        with pytest.raises(ShardError, match=f"parts is {parts}.* 5 nodes"):
            MemoryShards(graph, parts)
    shards = write_shards(graph, tmp_path / "parts", 2)
    for one in (shards, MemoryShards(graph, 2)):
        with pytest.raises(ShardError, match="no shard 2"):
            one.shard(2)
    with pytest.raises(ShardError, match=r"parts: .*graph in shards"):
        write_shards(graph, tmp_path / "parts", 2)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/diary.txt").write_text("mine")
    with pytest.raises(ShardError, match="is not empty"):
        write_shards(graph, tmp_path / "full")
    with pytest.raises(ShardError, match="is a file"):
        write_shards(graph, tmp_path / "full/diary.txt")
