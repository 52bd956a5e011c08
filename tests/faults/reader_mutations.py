"""Damage valid files of every format again and again, read them, and print as JSON how it went.

    python reader_mutations.py FOLDER COUNT SEED

This is a program because a reader could end its process, and because its memory is measured.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import resource
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).parent))  # so that imports of files beside this one work in any program

from reader_checks import attempt_graph, attempt_labels, attempt_vectors

from neural_brane import AttributedGraph
from neural_brane.files.graphs.formats import write_graph
from neural_brane.files.vectors.formats import VectorFile
from neural_brane.files.vectors.parts import write_parts

TYPED = ("edges.parquet", "edges.arrow", "packed.arrow", "stream.arrow", "foreign.parquet", "nodes.parquet")
TYPED += ("lists.parquet", "foreign.h5ad")
TYPED_SHARE = 0.04  # share of these formats, each first read in a new process, which is slow


def read_nodes(path: Path) -> str:
    return attempt_graph(path.with_name("edges.csv"), nodes=path)


def read_set(path: Path, name: str) -> str:
    """Read vectors that are stored in several files; `path` is one of them."""
    folder = path.parent.parent if path.parent.suffix == ".projector" else path.parent
    return attempt_vectors(folder / name)


def write_files(folder: Path) -> dict[str, Callable[[Path], str]]:
    """Write a valid file of every format; return the reader of each."""
    rng = np.random.default_rng(0)
    names = np.array(["ann", "bob", "çelik", "dan", "eve e", "fay", "gus", "hal"])
    edges = pl.DataFrame(
        {"source": rng.choice(names, 30), "target": rng.choice(names, 30), "weight": rng.random(30) + 0.1}
    )
    numbers = pl.DataFrame({"u": rng.integers(0, 20, 40), "v": rng.integers(0, 20, 40), "weight": rng.random(40) + 0.1})
    nodes = pl.DataFrame(
        {"id": names, "age": range(20, 28), "town": ["Köln", "Oslo", None, "Rom"] * 2, "on": [True, False] * 4}
    )
    graph = AttributedGraph.from_frames(edges, nodes)
    labelled = AttributedGraph.from_frames(edges, nodes, label="town")
    readers: dict[str, Callable[[Path], str]] = {}
    for name in ("graph.npz", "graph.graphml", "graph.gexf", "graph.gml", "graph.mtx"):
        write_graph(labelled, folder / name)
        readers[name] = attempt_graph
    readers["graph.attributes.mtx"] = lambda path: attempt_graph(path.with_name("graph.mtx"))
    write_graph(labelled, folder / "compressed.npz", compress=True)
    write_graph(graph, folder / "scipy.npz", layout="scipy")
    readers |= dict.fromkeys(("compressed.npz", "scipy.npz"), attempt_graph)
    write_tables(folder, edges, numbers, nodes, readers)
    write_texts(folder, readers)
    table = rng.normal(size=(8, 3)).astype(np.float32)
    for suffix in (".npz", ".txt", ".tsv", ".csv", ".parquet", ".safetensors", ".h5ad", ".pgvector"):
        VectorFile(folder / f"vectors{suffix}").write(np.arange(8) if suffix == ".txt" else names, [table], dim=3)
        readers[f"vectors{suffix}"] = attempt_vectors
    np.save(folder / "vectors.npy", table)
    rows = b"".join(b"n%d " % row + table[row].tobytes() + b"\n" for row in range(8))
    (folder / "vectors.bin").write_bytes(b"8 3\n" + rows)
    pl.DataFrame({"id": names, "d0": table[:, 0], "d1": table[:, 1]}).write_parquet(folder / "foreign.parquet")
    for target in (VectorFile(folder / "shown.projector"), VectorFile(folder / "pair.npy")):
        target.write(np.arange(8), [table], dim=3)
        readers |= {str(file.relative_to(folder)): partial(read_set, name=target.path.name) for file in target.files}
    for kind in ("npy", "parquet"):
        write_parts(folder / kind, names, table, parts=2, kind=kind)
        readers |= {
            f"{kind}/{file.name}": lambda path: attempt_vectors(path.parent) for file in (folder / kind).iterdir()
        }
    others = write_foreign(folder, names, table)
    return readers | dict.fromkeys(("vectors.npy", "vectors.bin", "foreign.parquet", *others), attempt_vectors)


def write_foreign(folder: Path, names: np.ndarray, table: np.ndarray) -> list[str]:
    """Write vectors without checksums, like other programs."""
    import h5py
    from safetensors.numpy import save_file

    pl.DataFrame({"id": names, "embedding": table.tolist()}).write_parquet(folder / "lists.parquet")
    with h5py.File(folder / "foreign.h5ad", "w") as file:
        file["X"], file["obs/_index"] = table, names.astype(object)
    save_file({"embeddings": table, "ids": np.arange(8)}, folder / "foreign.safetensors", {"format": "pt"})
    return ["lists.parquet", "foreign.h5ad", "foreign.safetensors"]


def write_tables(
    folder: Path,
    edges: pl.DataFrame,
    numbers: pl.DataFrame,
    nodes: pl.DataFrame,
    readers: dict[str, Callable[[Path], str]],
) -> None:
    edges.write_csv(folder / "edges.csv")
    edges.write_csv(folder / "edges.tsv", separator="\t")
    numbers.write_csv(folder / "semicolon.csv", separator=";")
    numbers.write_csv(folder / "numbers.txt", separator=" ", include_header=False)
    edges.write_ndjson(folder / "edges.jsonl")
    edges.write_parquet(folder / "edges.parquet")
    edges.write_ipc(folder / "edges.arrow")
    edges.write_ipc(folder / "packed.arrow", compression="zstd")
    edges.write_ipc_stream(folder / "stream.arrow")
    (folder / "edges.csv.gz").write_bytes(gzip.compress((folder / "edges.csv").read_bytes(), mtime=0))
    (folder / "wide.csv").write_text((folder / "edges.csv").read_text(), encoding="utf-16")
    names = ("edges.csv", "edges.tsv", "semicolon.csv", "numbers.txt", "edges.jsonl", "edges.csv.gz", "wide.csv")
    readers |= dict.fromkeys((*names, *TYPED[:4]), attempt_graph)
    nodes.write_csv(folder / "nodes.csv")
    nodes.write_ndjson(folder / "nodes.jsonl")
    nodes.write_parquet(folder / "nodes.parquet")
    readers.update(dict.fromkeys(("nodes.csv", "nodes.jsonl", "nodes.parquet"), read_nodes))


def write_texts(folder: Path, readers: dict[str, Callable[[Path], str]]) -> None:
    """Write a text graph with files of attributes and labels, and the two files of LINQS."""
    (folder / "plain.txt").write_text("# people\n5 4\nann bob 2\nbob cat 1\ncat dan 0.5\ndan eve 1\n")
    (folder / "attributes.txt").write_text("ann chess:1 tea:2.5\nbob tea\ncat chess\n")
    (folder / "labels.txt").write_text("ann\ttown\nbob\tclub house\neve\ttown\n")
    (folder / "papers.content").write_text("p1\t0\t1\tAI\np2\t1\t1\tDB\np3\t0\t0\tAI\n")
    (folder / "papers.cites").write_text("p1\tp2\np2\tp3\n")

    def read_texts(path: Path) -> str:
        beside = {name: path.with_name(f"{name}.txt") for name in ("attributes", "labels")}
        return attempt_graph(path.with_name("plain.txt"), **beside)

    readers |= {"plain.txt": attempt_graph, "attributes.txt": read_texts}
    readers["labels.txt"] = lambda path: read_texts(path) if path.stat().st_size % 2 else attempt_labels(path)
    readers["papers.cites"] = attempt_graph
    readers["papers.content"] = lambda path: attempt_graph(path.with_name("papers.cites"))


def mutate(rng: random.Random, content: bytes) -> bytes:
    """Flip, insert, remove, repeat or overwrite bytes in one place or several, or cut the file off."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        at, length = rng.randrange(len(changed) + 1), rng.choice((1, 1, 4, 40))
        kind = rng.randrange(6)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[at:at] = rng.randbytes(length)
        elif kind == 2:
            del changed[at : at + length]
        elif kind == 3:
            changed[at:at] = changed[at : at + length]
        elif kind == 4:
            changed[at : at + length] = rng.choice((b"\0", b"\xff", b"9", b",", b"\n", b'"', b"e", b"-")) * length
        elif rng.random() < 0.3:
            del changed[at:]
    return bytes(changed)


def peak(who: int) -> int:
    return resource.getrusage(who).ru_maxrss >> 10  # MB


def main(folder: Path, count: int, seed: int) -> None:
    (folder / "whole").mkdir()
    readers = write_files(folder / "whole")
    shutil.copytree(folder / "whole", folder / "damaged")
    for name, read in readers.items():
        assert read(folder / "whole" / name) == "read", name
    rng, before = random.Random(seed), peak(resource.RUSAGE_SELF)  # noqa: S311 - damage, not a secret
    light = sorted(set(readers) - set(TYPED))
    outcomes: dict[str, Counter[str]] = {name: Counter() for name in readers}
    failures = []
    for number in range(count):
        name = rng.choice(TYPED) if rng.random() < TYPED_SHARE else light[number % len(light)]
        damaged = folder / "damaged" / name
        damaged.write_bytes(mutate(rng, (folder / "whole" / name).read_bytes()))
        try:
            outcomes[name][readers[name](damaged)] += 1
        except BaseException:
            kept = folder / f"failed-{number}-{name.replace(os.sep, '-')}"
            shutil.copy(damaged, kept)
            failures.append(f"{kept.name}: {traceback.format_exc()}")
        shutil.copy(folder / "whole" / name, damaged)
    memory = peak(resource.RUSAGE_SELF) - before
    known = {"outcomes": outcomes, "failures": failures, "grown_mb": memory}
    print(json.dumps(known | {"trial_mb": peak(resource.RUSAGE_CHILDREN)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
