"""Sharding with little memory gives the graph that reading in memory gives, and goes on after a stop."""

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from neural_brane.errors import BraneError, ShardError
from neural_brane.files.graphs.formats import read_graph
from neural_brane.files.graphs.parts import open_shards
from neural_brane.files.graphs.sharding import Plan, shard_files
from neural_brane.files.graphs.sharding_reading import find_edges

LITTLE = 1 << 16  # bytes: chunks of about a hundred names, ranges of about a hundred entries


def shard(path, folder, attributes=None, parts=3, memory=LITTLE, duplicates="max", self_loops="keep", **columns):
    options = {name: columns.get(name) for name in ("source", "target", "weight", "header")}
    plan = Plan(find_edges(path, options), attributes, parts, duplicates, self_loops, memory)
    return shard_files(plan, folder)


def as_graph(shards):
    parts = [shards.part(number) for number in range(len(shards))]
    return (
        sparse.vstack([part.adjacency.matrix(shards.nodes) for part in parts]).tocsr(),
        sparse.vstack([part.attributes.matrix(shards.attributes) for part in parts]).tocsr(),
        np.concatenate([shards.ids(number) for number in range(len(shards))]),
        shards.attribute_names(),
    )


def assert_same(shards, graph):
    """The same numbers, ids, edges, weights and attributes."""
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
    """Pairs with a hub, repeats in both directions and self-loops."""
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
    bags = [[f"{name}:{amount}" for name, amount in random.integers(-1, 40, (4, 2)).tolist()] for _ in nodes]
    lines = [" ".join([str(node), *bag]) for node, bag in zip(nodes, bags, strict=True)]
    (tmp_path / "words.txt").write_text("\n".join(lines))
    graph = read_graph(tmp_path / "graph.txt", attributes=tmp_path / "words.txt")
    assert_same(shard(tmp_path / "graph.txt", tmp_path / "parts", tmp_path / "words.txt", parts=5), graph)


@pytest.mark.parametrize(
    "text",
    [
        "4 2\n0 1\n2 0\n",  # a header; node 3 has no edge
        "5 2\nann bob\nbob cid\n",  # of names, some of which the attributes name
        "1 2\n2 3\n3 1\n",  # an edge that could be a header
        "7 9\n2 3\n3 1\n9 9\n",  # an edge that could not
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
        ("4 2\nann bob\nbob cid\n", "ann 1\n"),  # a node that nobody names
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
    with pytest.raises(ShardError, match=r"no manifest\.json"):
        open_shards(tmp_path / "parts")


class StopError(Exception):
    """What ends a run in the middle."""


def test_a_run_that_is_stopped_anywhere_never_opens_and_goes_on(tmp_path):
    ends, _ = random_pairs(3, edges=400, nodes=100)
    names = np.char.add("n", ends.astype(str))
    (tmp_path / "graph.txt").write_text("\n".join(lines_of(names)))
    (tmp_path / "words.txt").write_text("\n".join(f"{name} {at % 9}" for at, name in enumerate(np.unique(names))))
    plan = Plan(find_edges(tmp_path / "graph.txt", {}), tmp_path / "words.txt", 3, memory=LITTLE)
    told, stops = [], 0

    def stop_after(count):
        def report(progress):
            nonlocal count
            count -= 1
            if count < 0:
                raise StopError

        return report

    for patience in range(1000):
        try:
            shards = shard_files(plan, tmp_path / "parts", report=stop_after(patience % 4 + 1), tell=told.append)
            break
        except StopError:
            stops += 1
            with pytest.raises(ShardError, match=r"no manifest\.json"):
                open_shards(tmp_path / "parts")
    assert stops >= 4
    assert any("part 1" in line for line in told)
    assert_same(shards, read_graph(tmp_path / "graph.txt", attributes=tmp_path / "words.txt"))


def test_a_run_goes_on_only_with_the_same_sources_and_options(tmp_path):
    path = tmp_path / "graph.txt"
    path.write_text("1 2\n2 3\n3 4\n4 1\n")

    def stop(progress):
        if progress.part == "dealing":
            raise StopError

    plan = Plan(find_edges(path, {}), None, 2, memory=LITTLE)
    with pytest.raises(StopError):
        shard_files(plan, tmp_path / "parts", report=stop)
    with pytest.raises(ShardError, match=r"was begun with graph\.txt, parts 2.*, not graph\.txt, parts 4"):
        shard_files(Plan(plan.edges, None, 4, memory=LITTLE), tmp_path / "parts")
    path.write_text("1 2\n2 3\n3 4\n4 2\n")
    with pytest.raises(ShardError, match=r"graph\.txt: has changed since"):
        shard_files(plan, tmp_path / "parts")


def test_requests_that_make_no_sense_are_refused(tmp_path):
    (tmp_path / "graph.txt").write_text("1 2\n2 3\n")
    edges = find_edges(tmp_path / "graph.txt", {})
    for plan, message in (
        (Plan(edges, None, 0), "parts is 0"),
        (Plan(edges, None, 1, memory=5), "memory is 5 bytes"),
        (Plan(edges, None, 9), "parts is 9, and the graph has 3 nodes"),
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
