"""Sharding files gives the same graph as reading them in memory, with any number of threads."""

import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from neural_brane.errors import BraneError, DependencyError, ShardError
from neural_brane.files.graphs.formats import read_graph
from neural_brane.files.graphs.sharding import LEAST, Database, Plan, merge_repeats, shard_files
from neural_brane.files.graphs.sharding_reading import find_edges, plain_integers
from neural_brane.files.graphs.shards import open_shards
from neural_brane.files.reading import Block
from neural_brane.progress import Meter

# Random pairs have a direction, of which reading in memory warns.
pytestmark = pytest.mark.filterwarnings("ignore:.*direction of the pairs:neural_brane.errors.ReadingWarning")


def shard(path, folder, attributes=None, parts=3, memory=LEAST, duplicates="max", self_loops="keep", **columns):
    options = {name: columns.get(name) for name in ("source", "target", "weight", "header")}
    plan = Plan(find_edges(path, options), attributes, parts, duplicates, self_loops, memory)
    return shard_files(plan, folder)


def as_graph(shards):
    parts = [shards.shard(number) for number in range(len(shards))]
    return (
        sparse.vstack([part.adjacency.matrix(shards.nodes) for part in parts]).tocsr(),
        sparse.vstack([part.attributes.matrix(shards.attributes) for part in parts]).tocsr(),
        np.concatenate([shards.ids(number) for number in range(len(shards))]),
        shards.attribute_names(),
    )


def assert_same(shards, graph):
    """Check that the shards have the numbers, ids, edges, weights and attributes of a graph."""
    shards.check()
    adjacency, attributes, ids, names = as_graph(shards)
    assert ids.tolist() == graph.ids.tolist()
    assert names.tolist() == graph.attribute_names.tolist()
    assert np.array_equal(adjacency.indptr, graph.adjacency.indptr)
    assert np.array_equal(adjacency.indices, graph.adjacency.indices)
    assert np.array_equal(adjacency.data, graph.adjacency.data)
    assert np.array_equal(attributes.indptr, graph.attributes.indptr)
    assert np.array_equal(attributes.indices, graph.attributes.indices)
    assert np.array_equal(attributes.data, graph.attributes.data)
    assert (shards.nodes, shards.edges) == (len(graph), graph.edges)
    assert (shards.attributes, shards.entries) == (len(graph.attribute_names), graph.attributes.nnz)
    assert shards.weighted == bool((graph.adjacency.data != 1).any())
    assert shards.amounts == bool((graph.attributes.data != 1).any())


def random_pairs(seed, edges=1500, nodes=400):
    """Return random pairs with a hub, repeats in both directions and self-loops."""
    random = np.random.default_rng(seed)
    ends = np.minimum(random.integers(0, nodes, (edges, 2)), random.integers(0, 2 * nodes, (edges, 2)))
    ends[::7, 0] = 5
    ends[-50:] = ends[:50, ::-1]
    return ends, np.round(random.random(edges) * 9 + 0.1, 3)


KINDS = {
    "dense": lambda ends: ends,
    "from 1000": lambda ends: ends * 3 + 1000,
    "negative": lambda ends: ends - 200,
    "sparse": lambda ends: ends * 10**15 + 17,
    "strings": lambda ends: np.char.add("node-", ends.astype(str)),
    "long strings": lambda ends: np.char.add("the node with the long name ü", (ends**3).astype(str)),
    "one name": lambda ends: np.where(ends == 399, "last", ends.astype(str)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("weighted", "duplicates", "self_loops"), [(False, "max", "keep"), (True, "sum", "drop"), (False, "sum", "keep")]
)
def test_a_table_of_edges(kind, weighted, duplicates, self_loops, tmp_path):
    ends, weights = random_pairs(len(kind))
    names = KINDS[kind](ends)
    columns = {"source": names[:, 0], "target": names[:, 1]} | ({"weight": weights} if weighted else {})
    pl.DataFrame(columns).write_csv(tmp_path / "edges.csv")
    rules = {"duplicates": duplicates, "self_loops": self_loops}
    shards = shard(tmp_path / "edges.csv", tmp_path / "parts", **rules)
    assert_same(shards, read_graph(tmp_path / "edges.csv", **rules))
    assert not (tmp_path / "parts/.unfinished").exists()


def test_a_folder_of_parquet_files_and_attributes_in_parquet(tmp_path):
    ends, weights = random_pairs(1)
    (tmp_path / "edges").mkdir()
    for at in range(3):
        rows = slice(500 * at, 500 * (at + 1))
        frame = pl.DataFrame({"src": ends[rows, 0], "dst": ends[rows, 1], "weight": weights[rows]})
        frame.write_parquet(tmp_path / f"edges/part-{at}.parquet")
    whole = pl.DataFrame({"src": ends[:, 0], "dst": ends[:, 1], "weight": weights})
    whole.write_parquet(tmp_path / "whole.parquet")
    entries = [(node, f"a{node % k}", float(k)) for node in np.unique(ends).tolist() for k in (3, 7, 11)]
    pl.DataFrame(entries, schema=["node", "name", "amount"], orient="row").write_parquet(tmp_path / "bags.parquet")
    bags = {}
    for node, name, amount in entries:
        bags.setdefault(node, {}).setdefault(name, []).append(amount)
    lines = (
        " ".join([f"{node}", *(f"{one}:{max(found)}" for one, found in bag.items())]) for node, bag in bags.items()
    )
    (tmp_path / "bags.txt").write_text("\n".join(lines))
    graph = read_graph(tmp_path / "whole.parquet", attributes=tmp_path / "bags.txt")
    assert_same(shard(tmp_path / "edges", tmp_path / "a", tmp_path / "bags.parquet"), graph)
    assert_same(shard(tmp_path / "whole.parquet", tmp_path / "b", tmp_path / "bags.txt"), graph)
    assert open_shards(tmp_path / "a").name == "edges"


def lines_of(ends, weights=None):
    ends = ends.tolist()
    return [" ".join(map(str, pair if weights is None else [*pair, weights[at]])) for at, pair in enumerate(ends)]


@pytest.mark.parametrize("kind", ["dense", "strings", "one name"])
@pytest.mark.parametrize("weighted", [False, True])
def test_lines_of_words_with_nodes_that_stand_alone_comments_and_attributes(kind, weighted, tmp_path):
    ends, weights = random_pairs(7)
    names = KINDS[kind](ends)
    alone = KINDS[kind](np.array([[900, 901]]))[0].tolist()
    lines = ["# a comment", *lines_of(names, weights if weighted else None)]
    lines[40:40] = [f"{alone[0]}", "", "  # another"]
    (tmp_path / "graph.txt").write_text("\n".join([*lines, f"{alone[1]}"]))
    nodes = [*np.unique(names).tolist()[::2], alone[1]]
    random = np.random.default_rng(0)
    amounts = [dict(random.integers(-1, 40, (4, 2)).tolist()) for _ in nodes]
    bags = [[f"{name}:{amount}" for name, amount in own.items()] for own in amounts]
    lines = [" ".join([str(node), *bag]) for node, bag in zip(nodes, bags, strict=True)]
    (tmp_path / "words.txt").write_text("\n".join(lines))
    graph = read_graph(tmp_path / "graph.txt", attributes=tmp_path / "words.txt")
    assert_same(shard(tmp_path / "graph.txt", tmp_path / "parts", tmp_path / "words.txt", parts=5), graph)


@pytest.mark.parametrize(
    "text",
    [
        "4 2\n0 1\n2 0\n",  # a header; node 3 has no edge
        "5 2\nann bob\nbob cid\n",  # a header above names; only the attributes name the other nodes
        "1 2\n2 3\n3 1\n",  # an edge that could be a header
        "7 9\n2 3\n3 1\n9 9\n",  # an edge that cannot be a header
        "ann bob\nbob cid\ncid cid\n",
        "ann,bob\nbob\tcid\ncid   dee\n",
        "007 7\n7 8\n9223372036854775808 7\n",
        "3\n2 1\n",
    ],
)
@pytest.mark.filterwarnings("ignore::neural_brane.errors.ReadingWarning")
def test_first_lines_and_separators_are_read_as_the_reader_of_graphs_reads_them(text, tmp_path):
    (tmp_path / "graph.txt").write_text(text)
    words = tmp_path / "words.txt" if "cid" in text and "5 2" in text else None
    if words is not None:
        words.write_text("ann 1 2\neve 1\ndan 7:2\n")
    graph = read_graph(tmp_path / "graph.txt", attributes=words)
    assert_same(shard(tmp_path / "graph.txt", tmp_path / "parts", words, parts=2), graph)


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ("5 7\n0 1\n2 0\n", None),  # a wrong count
        ("ann bob\nnan cid\n", None),
        ("a b 1\nb c\n", None),
        ("a b c d\n", None),
        ("a b -1\n", None),
        ("source target\n1 2\n", None),
        ("who whom\n1 2\n3 4\n", None),
        ("4 2\nann bob\nbob cid\n", "ann 1\n"),  # the header counts one more node than the files name
        ("2 2\nann bob\nbob cid\n", None),
        ("1 2\n2 3\n1 4\n", "9 1\n"),
        ("1 2\n2 3\n1 4\n", "x 1\n"),
        ("ann bob\nbob cid\n", "eve 1\n"),
        ("ann bob\nbob cid\n", "ann 1\nbob 2\nann 3\n"),
        ("ann bob\nbob cid\n", "ann 1:x\n"),
        ("# nothing\n", None),
        ("a\nb\n", None),
    ],
)
def test_what_the_reader_of_graphs_refuses_is_refused_with_the_place(edges, words, tmp_path):
    (tmp_path / "graph.txt").write_text(edges)
    attributes = tmp_path / "words.txt" if words is not None else None
    if attributes is not None:
        attributes.write_text(words)
    with pytest.raises(BraneError) as expected:
        read_graph(tmp_path / "graph.txt", attributes=attributes)
    with pytest.raises(BraneError) as found:
        shard(tmp_path / "graph.txt", tmp_path / "parts", attributes, parts=1)
    assert str(found.value).split(":")[0] == str(expected.value).split(":")[0]
    assert not (tmp_path / "parts").exists()


class StopError(Exception):
    """An error that stops a run between two stages."""


@pytest.mark.parametrize("stage", ["edges", "attributes", "adjacency"])
def test_a_run_that_is_stopped_leaves_nothing_and_can_begin_again(stage, tmp_path):
    (tmp_path / "graph.txt").write_text("\n".join(lines_of(random_pairs(3, edges=400, nodes=100)[0])))
    (tmp_path / "words.txt").write_text("\n".join(f"{node} {node % 9}" for node in range(0, 50, 5)))

    def stop(progress):
        if progress.stage == stage:
            raise StopError

    plan = Plan(find_edges(tmp_path / "graph.txt", {}), tmp_path / "words.txt", 3, memory=LEAST)
    with pytest.raises(StopError):
        shard_files(plan, tmp_path / "parts", report=stop)
    assert not (tmp_path / "parts").exists()
    (tmp_path / "parts/.unfinished/part-00000").mkdir(parents=True)  # a killed run leaves this folder
    assert_same(
        shard_files(plan, tmp_path / "parts"), read_graph(tmp_path / "graph.txt", attributes=tmp_path / "words.txt")
    )


def test_files_are_the_same_on_any_number_of_threads(tmp_path):
    ends, weights = random_pairs(4, edges=300_000, nodes=40_000)
    frame = pl.DataFrame({"u": np.char.add("n", ends[:, 0].astype(str)), "v": ends[:, 1], "weight": weights})
    frame.write_parquet(tmp_path / "edges.parquet")
    plan = Plan(find_edges(tmp_path / "edges.parquet", {}), None, 3, "sum", memory=2**30)
    found = [shard_files(replace(plan, threads=threads), tmp_path / f"{threads}").manifest for threads in (1, 4)]
    assert found[0] == found[1]


def test_a_column_of_integers_turns_into_strings_when_names_come(tmp_path):
    with Database(tmp_path, LEAST) as tables:
        tables.append("edges", pl.DataFrame({"u": [7, 10], "v": [7, None]}))
        tables.append("edges", pl.DataFrame({"u": ["ann"], "v": ["7"], "weight": pl.Series([2], dtype=pl.Float32)}))
        tables.append("edges", pl.DataFrame({"u": [-3], "v": [10]}))
        rows = tables.run("SELECT rowid, u, v, weight FROM edges")
    assert rows == [(0, "7", "7", None), (1, "10", None, None), (2, "ann", "7", 2), (3, "-3", "10", None)]


@pytest.mark.parametrize("add", [False, True])
def test_repeats_that_lie_in_several_batches_are_merged(add):
    keys, weights = [1, 1, 2, 2, 2, 2, 2, 5, 9, 9], np.arange(10, dtype=np.float32)
    frame = pl.DataFrame({"key": pl.Series(keys, dtype=pl.UInt64), "weight": weights})
    batches = [batch for rows in frame.iter_slices(3) for batch in rows.to_arrow().to_batches()]
    merged = list(merge_repeats(iter(batches), Meter(None, 10, "entries"), add=add))
    assert np.concatenate([found for found, _ in merged]).tolist() == [1, 2, 5, 9]
    expected = [1, 20, 7, 17] if add else [1, 6, 7, 9]
    assert np.concatenate([found for _, found in merged]).tolist() == expected


@pytest.mark.parametrize("text", ["1 2\n-3 9223372036854775807\n-9223372036854775808 0\n", "10 99\n100 999999999\n"])
def test_plain_integers_are_read_at_once(text):
    frame = plain_integers(Block(text.encode(), 1, text.count("\n")), " ")
    assert frame.rows() == [tuple(map(int, line.split())) for line in text.splitlines()]


@pytest.mark.parametrize(
    "text", ["1 02\n", "1 +2\n", "1 2 3\n", "1\n", "1 2\n\n", "-0 1\n", "1  2\n", "9223372036854775808 1\n"]
)
def test_what_is_not_plainly_an_integer_is_left_to_the_careful_reader(text):
    assert plain_integers(Block(text.encode(), 1, text.count("\n")), " ") is None


def test_requests_that_make_no_sense_are_refused(tmp_path):
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n")
    edges = find_edges(tmp_path / "graph.txt", {})
    for plan, message in (
        (Plan(edges, None, 0), "parts is 0"),
        (Plan(edges, None, 1, memory=5), "memory is 5 bytes"),
        (Plan(edges, None, 9), "parts is 9.* 3 nodes"),
        (Plan(edges, None, 1, duplicates="min"), "duplicates is 'min'"),
    ):
        with pytest.raises(BraneError, match=message):
            shard_files(plan, tmp_path / "parts")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/diary.txt").write_text("mine")
    with pytest.raises(ShardError, match="is not empty"):
        shard_files(Plan(edges, None, 1), tmp_path / "full")
    with pytest.raises(BraneError, match=r"no file that ends in \.parquet"):
        find_edges(tmp_path / "full", {})
    assert find_edges(tmp_path / "graph.npz", {}) is None
    assert find_edges("-", {}) is None


def test_without_duckdb_the_error_says_how_to_install_it(tmp_path, monkeypatch):
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(DependencyError, match=r"neural-brane\[shards\]"):
        shard(tmp_path / "graph.txt", tmp_path / "parts")
    assert not (tmp_path / "parts").exists()
