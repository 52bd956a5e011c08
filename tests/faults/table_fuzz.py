"""Write random tables in every format and read them back: they give the graph that was written, or one of our errors.

python tests/faults/table_fuzz.py 3000 prints the count of each outcome.
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl

from neural_brane import read
from neural_brane.errors import BraneError
from neural_brane.graph import AttributedGraph

ID_TITLES = ("id", "node", "name", "person", "key", "Node", "user", "from", "ID ")
NAMES = ("ann", "bob lee", "cid;x", "dän", "007", "08", "1e5", "x,y", "0.5a", "TRUE", "no")


class Case(NamedTuple):
    """A table of nodes and its edges, and the facts that must come back."""

    edges: pd.DataFrame
    nodes: pd.DataFrame  # may have an index that holds the ids
    traits: dict[str, tuple[str, str]]  # team and age by id
    doubled: bool  # two columns get the same title in text


def draw_ids(rng: np.random.Generator, count: int) -> np.ndarray | list[str]:
    """Return distinct ids: integers from 0 or 1, any integers, whole floats or strings."""
    kind = rng.integers(5)
    if kind < 2:
        return np.arange(kind, kind + count)
    if kind == 2:
        return rng.choice(10**6, count, replace=False)
    if kind == 3:
        return rng.choice(1000, count, replace=False).astype(float)
    own = rng.permutation(NAMES)[: min(count, 4)].tolist()
    return own + [f"n{number}" for number in range(count - len(own))]


def draw_case(rng: np.random.Generator) -> Case:
    """Return a random table of nodes, as people leave them after sorting, filtering and joining, and its edges."""
    count = int(rng.integers(5, 40))
    ids = draw_ids(rng, count)
    first = rng.permutation(count)
    ends = np.stack([first, np.roll(first, 1)], axis=1)  # every node has an edge
    ends = np.unique(np.sort(np.concatenate([ends, rng.integers(count, size=(count, 2))]), axis=1), axis=0)
    ends = rng.permutation(ends[ends[:, 0] != ends[:, 1]])
    titles = [("from", "to"), ("source", "target"), ("user", "friend"), ("a", "b")][rng.integers(4)]
    given = np.array(ids)
    edges = pd.DataFrame({titles[0]: given[ends[:, 0]], titles[1]: given[ends[:, 1]]})
    if rng.random() < 0.2:
        edges.insert(0, ["", "row", "Unnamed: 0"][rng.integers(3)], np.arange(len(edges)))
    if rng.random() < 0.2:
        edges[["weight", "since", ""][rng.integers(3)]] = rng.integers(1, 9, len(edges))
    teams = rng.choice(["red", "blue", "green"], count).tolist()
    ages = rng.choice([18, 29, 34, 51, 62], count)
    title = ID_TITLES[rng.integers(len(ID_TITLES))]
    nodes = pd.DataFrame({title: ids, "team": teams, "age": ages})
    if rng.random() < 0.3:
        nodes.insert(0, ["row", "nr", "", "Unnamed: 0"][rng.integers(4)], np.arange(count) + rng.integers(2))
    ranked = rng.random() < 0.2
    if ranked:
        nodes["rank"] = rng.permutation(count)
    if rng.random() < 0.2:
        nodes["age"] = nodes["age"].astype(float)
    nodes = shuffle(rng, nodes, title, named=ranked)
    kept = nodes.get(title, nodes.index)
    keys = [spell(one) for one in ids]
    by_id = dict(zip(keys, zip(teams, map(str, ages), strict=True), strict=True))
    return Case(edges, nodes, {spell(one): by_id[spell(one)] for one in kept}, bool(rng.random() < 0.1))


def shuffle(rng: np.random.Generator, nodes: pd.DataFrame, title: str, *, named: bool) -> pd.DataFrame:
    """Return the rows in another order, filtered or concatenated, perhaps with the ids in the index.

    named: an index of ids has a title, because another column could be the ids too.
    """
    if rng.random() < 0.6:
        nodes = nodes.sample(frac=1, random_state=int(rng.integers(1 << 30)))
    if rng.random() < 0.3:
        nodes = nodes[rng.random(len(nodes)) < 0.9]
    if rng.random() < 0.2:
        half = len(nodes) // 2
        nodes = pd.concat([nodes[half:].reset_index(drop=True), nodes[:half].reset_index(drop=True)])
    if rng.random() < 0.3:
        nodes = nodes.set_index(title)
        if not named and rng.random() < 0.3:
            nodes.index.name = None
    elif rng.random() < 0.4:
        nodes = nodes.reset_index(drop=True)
    return nodes


def spell(one: Any) -> str:
    """Return an id as text; 7.0 is 7."""
    return str(int(one)) if isinstance(one, float | np.floating) else str(one)


def write(case: Case, folder: Path, index: bool) -> list[tuple[Path, Path]]:
    """Write both tables in every format; return their paths."""
    nodes = case.nodes
    flat = nodes.reset_index() if index else nodes
    paths = []
    for suffix in ("csv", "tsv", "parquet", "jsonl"):
        pair = folder / f"edges.{suffix}", folder / f"nodes.{suffix}"
        for path, table in zip(pair, (case.edges, flat if suffix == "jsonl" else nodes), strict=True):
            if suffix in ("csv", "tsv"):
                own = table is not case.edges and index
                text = table.to_csv(sep="," if suffix == "csv" else "\t", index=own)
                if case.doubled and path == pair[1]:
                    text = text.replace("team", "age", 1)
                path.write_text(text)
            elif suffix == "parquet":
                table.to_parquet(path, index=index if table is not case.edges else False)
            else:
                table.to_json(path, orient="records", lines=True)
        paths.append(pair)
    return paths


def outcome(make: Any, case: Case) -> tuple[str, str]:
    """Return whether the graph is the one that was written, or which error was raised; and all that it holds."""
    try:
        graph = make()
    except BraneError as error:
        return f"{type(error).__name__}: {' '.join(str(error).split(': ', 1)[-1].split()[:3])}", ""
    adjacency = graph.adjacency.tocoo()
    ids = [str(node) for node in graph.ids.tolist()]
    found = {frozenset((ids[u], ids[v])) for u, v in zip(*adjacency.coords, strict=True)}
    columns = case.edges.columns
    pair = next((a, b) for a, b in pairwise(columns) if a in ("from", "source", "user", "a"))
    if found != {frozenset(map(spell, ends)) for ends in case.edges[list(pair)].itertuples(index=False)}:
        return "WRONG edges", ""
    names = graph.attribute_names.tolist()
    held = [sorted(names[at] for at in graph.attributes[[row]].indices) for row in range(len(ids))]
    whole = repr((ids, graph.ids.dtype.kind, adjacency.data.tolist(), held))
    constant, ignored = {""}, set()  # a column of one value is no attribute, and one of distinct values may be none
    for values in zip(*case.traits.values(), strict=True):
        constant |= set(values) if len(set(values)) == 1 else set()
        ignored |= set(values) if len(set(values)) == len(values) else set()
    for row, node in enumerate(ids):
        own = {names[at] for at in graph.attributes[[row]].indices}
        team, age = case.traits.get(node, ("", ""))
        teams, ages = {one[5:] for one in own if one.startswith("team=")}, {one[4:] for one in own if one[:4] == "age="}
        for one, held_here in ((team, teams), (age, ages)):
            if not case.doubled and held_here != {one} - constant and not (one in ignored and not held_here):
                return "WRONG attributes", ""
    return "same", whole


def try_case(seed: int, folder: Path) -> list[str]:
    """Return the outcomes of one case: in memory with three libraries, and from files in four formats."""
    rng = np.random.default_rng(seed)
    case = draw_case(rng)
    index = not case.nodes.columns.intersection(ID_TITLES).size or bool(rng.random() < 0.3)
    makers = {"pandas": lambda: AttributedGraph.from_frames(case.edges, case.nodes)}
    flat = case.nodes.reset_index() if index else case.nodes
    for library in ("polars", "arrow"):
        tables = [pl.from_pandas(table) for table in (case.edges, flat)]
        tables = tables if library == "polars" else [table.to_arrow() for table in tables]
        makers[library] = lambda tables=tables: AttributedGraph.from_frames(*tables)
    for edges, nodes in write(case, folder, index):
        makers[edges.suffix] = lambda edges=edges, nodes=nodes: read(edges, nodes=nodes)
    found = {name: outcome(make, case) for name, make in makers.items()}
    plain = {
        digest for name, (_, digest) in found.items() if digest and not (case.doubled and name[1:] in ("csv", "tsv"))
    }
    return [*(said for said, _ in found.values()), *(["WRONG digests differ"] if len(plain) > 1 else [])]


def count_outcomes(cases: int, start: int = 0) -> Counter[str]:
    """Return how often each outcome occurred."""
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(start, start + cases):
            said = try_case(seed, Path(folder))
            counts.update(said)
            if any(one.startswith("WRONG") for one in said) and __name__ == "__main__":
                print(seed, said)
    return counts


if __name__ == "__main__":
    for said, times in count_outcomes(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0).most_common():
        print(f"{times:8,}  {said}")
