"""Measure searches among many vectors: exact, and with a faiss index.

    python benchmarks/search.py [--nodes 1000000] [--dim 150] [--vectors FILE.npz] [--json]

Searches clustered vectors, made here or read from a file, for the ten nearest of random nodes. Each step runs in a new
process, so that its memory can be measured. Prints

    open_mapped_ms        Embedding.load(…, mmap=True, check=False)
    exact_ms              embedding.nearest(id), median
    exact_known_ms        the same with `Exact`, which keeps the vectors' lengths, without converting rows to ids
    exact_hundred_ms      one search for a hundred nodes
    build_s, build_mb     embedding.index(): seconds, and peak memory of the process
    file_mb               size of the saved index
    open_ms, open_all_ms  load_index(check=False), and the same with its checksums checked
    query_ms              index.nearest(id), on a memory-mapped index
    open_held_mb          memory added by opening the index
    open_mb               peak memory of that process, including pages of the file
    recall_at_10          compared with exact search, on nodes that were not used to tune the index
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.experiments.compute import peak_memory, run
from neural_brane.experiments.store import describe_machine

QUERIES = 200  # nodes whose neighbours are compared
TIMED = 20  # nodes that are timed one by one
PER_CLUSTER = 1000
LATENT = 24


def make(task: tuple[Path, int, int]) -> None:
    """Write vectors with overlapping clusters in LATENT directions and noise in all; task: (path, nodes, dim)."""
    from neural_brane.files.vectors.formats import VectorFile

    path, nodes, dim = task
    random = np.random.default_rng(0)
    centres = random.standard_normal((max(nodes // PER_CLUSTER, 1), LATENT), np.float32)
    directions = random.standard_normal((LATENT, dim), np.float32) / np.float32(LATENT**0.5)

    def blocks() -> Iterator[np.ndarray]:
        for start in range(0, nodes, 50_000):
            rows = random.integers(0, len(centres), min(50_000, nodes - start))
            latent = centres[rows] + np.float32(0.7) * random.standard_normal((len(rows), LATENT), np.float32)
            yield latent @ directions + np.float32(0.3) * random.standard_normal((len(rows), dim), np.float32)

    VectorFile(path).write(np.arange(nodes), blocks(), dim=dim)


def exact(path: Path) -> dict[str, Any]:
    """Return the times of exact search on memory-mapped vectors, and its answers."""
    from neural_brane.embedding import Embedding
    from neural_brane.search.exact import Exact, nearest_rows

    opened, embedding = timed(lambda: Embedding.load(path, mmap=True, check=False))
    queries = sample(len(embedding))
    known = Exact(embedding.vectors)
    found = known.nearest(embedding.vectors[queries], 10, queries).rows
    nodes = embedding.ids[queries].tolist()
    return {
        "open_mapped_ms": 1e3 * opened,
        "exact_ms": median_ms(embedding.nearest, nodes[:TIMED]),
        "exact_known_ms": median_ms(lambda row: known.nearest(embedding.vectors[[row]], 10), queries[:TIMED]),
        "exact_hundred_ms": 1e3
        * timed(lambda: nearest_rows(embedding.vectors, embedding.vectors[queries[:100]], 10))[0],
        "exact_mb": peak_memory(),
        "found": found.tolist(),
    }


def build(task: tuple[Path, Path]) -> dict[str, Any]:
    """Build and save an index, and return the measurements; task: (file of vectors, file of the index)."""
    from neural_brane.embedding import Embedding

    path, saved = task
    embedding = Embedding.load(path, mmap=True, check=False)
    seconds, index = timed(embedding.index)
    index.save(saved)
    return {
        "build_s": seconds,
        "build_mb": peak_memory(),
        "file_mb": saved.stat().st_size / 1e6,
        "lists": index.lists.nlist,
        "probes": index.lists.nprobe,
        "recall_at_build": index.recall,
    }


def query(saved: Path) -> dict[str, Any]:
    """Open a saved index, search it, and return the measurements and answers."""
    from neural_brane.search.index import import_faiss, load_index

    import_faiss()  # importing does not count as opening
    held = peak_memory()
    opened, index = timed(lambda: load_index(saved, check=False))
    opened_mb = peak_memory() - held
    queries = sample(len(index))
    nodes = index.ids[queries].tolist()
    answers = index.nearest(nodes)
    place = {node: row for row, node in enumerate(index.ids.tolist())}
    figures = {
        "open_ms": 1e3 * opened,
        "open_held_mb": opened_mb,
        "query_ms": median_ms(index.nearest, nodes[:TIMED]),
        "query_hundred_ms": 1e3 * timed(lambda: index.nearest(nodes[:100]))[0],
        "open_mb": peak_memory(),
        "answers": [[place[node] for node, _ in answer] for answer in answers],
    }
    return figures | {"open_all_ms": 1e3 * timed(lambda: load_index(saved))[0]}


def sample(nodes: int) -> np.ndarray:
    """Return random rows to search for; the index is tuned on others."""
    return np.random.default_rng(12345).permutation(nodes)[:QUERIES]


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that `work` takes, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def median_ms(ask: Callable[[Any], Any], nodes: Any) -> float:
    """Return the median milliseconds of `ask` for one node."""
    return 1e3 * float(np.median([timed(lambda node=node: ask(node))[0] for node in nodes]))


def measure(path: Path, folder: Path) -> dict[str, Any]:
    """Return all measurements of one file of vectors."""
    saved = folder / "vectors.faiss"
    figures: dict[str, Any] = {}
    for step, task in ((exact, path), (build, (path, saved)), (query, saved)):
        figures |= alone(step, task)
    found, answers = figures.pop("found"), figures.pop("answers")
    shares = [len(set(one) & set(other)) / len(one) for one, other in zip(found, answers, strict=True)]
    figures["recall_at_10"] = float(np.mean(shares))
    return {name: round(value, 4) if value < 1 else round(value, 2) for name, value in figures.items()}


def alone(step: Callable[[Any], Any], task: Any) -> Any:
    """Run a step in a new process and return its result."""
    (ended,) = run(step, [task], jobs=1)
    if ended.failure:
        raise SystemExit(f"{step.__name__}: {ended.failure}")
    return ended.result


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=150)
    parser.add_argument("--vectors", type=Path, help="an .npz file from 'brane embed', instead of made vectors")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.vectors or Path(folder) / "vectors.npz"
        if options.vectors is None:
            alone(make, (path, options.nodes, options.dim))
        figures = measure(path, Path(folder))
    size = {} if options.vectors else {"nodes": options.nodes, "dim": options.dim}
    about = {"machine": describe_machine(), "load": os.getloadavg(), "vectors": str(options.vectors or "clustered")}
    record = about | size | figures
    print(json.dumps(record, indent=2) if options.json else "\n".join(f"{a:18} {b}" for a, b in figures.items()))


if __name__ == "__main__":
    main()
