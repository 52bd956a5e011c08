"""Measure `brane shard` on a long edge list, compared with only sorting the file.

    python benchmarks/shard.py [--edges 100000000] [--named 10000000] [--parts 8] [--memory 1GB] [--json]

Two edge lists are written to a temporary folder, as CSV with the columns source and target. The ends are drawn
uniformly from a tenth as many nodes as there are edges. The first list has integer ids; the second, shorter one has
names ("user-" and the number). `brane shard` runs on each list in a new process. The system's `sort` sorts the lines
of the same file, by two numbers or as text, with two threads and a buffer of 1 GB. `brane shard` does more: it sorts
both directions of every edge, numbers the nodes, and writes binary arrays with checksums. Prints for each list

    file_mb               size of the edge list
    shard_s, shard_cpu_s  brane shard: wall-clock time, and time on all cores
    shard_peak_mb         peak memory of brane shard
    sort_s, sort_cpu_s    the same for sort
    sort_peak_mb          peak memory of sort
    times                 shard_s / sort_s
    opened                nodes and edges of the folder, after its checksums were checked
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.experiments.store import describe_machine

BLOCK = 5_000_000  # edges written at a time
BRANE = (sys.executable, "-c", "from neural_brane.cli import main; main()")
SORTING = ("sort", "-S", "1G", "--parallel=2")
KEYS = {False: ("-t,", "-k1,1n", "-k2,2n"), True: ()}


def write_edges(path: Path, edges: int, *, named: bool) -> None:
    """Write an edge list, a block of lines at a time."""
    import polars as pl

    random = np.random.default_rng(0)
    with path.open("wb") as file:
        for start in range(0, edges, BLOCK):
            ends = random.integers(0, max(edges // 10, 2), (min(BLOCK, edges - start), 2))
            frame = pl.DataFrame(ends, schema=["source", "target"], orient="row")
            if named:
                frame = frame.with_columns(pl.concat_str(pl.lit("user-"), end).alias(end) for end in frame.columns)
            frame.write_csv(file, include_header=start == 0)


def measure(command: list[str]) -> dict[str, float]:
    """Run a command, and return its seconds, its seconds on all cores, and its peak memory in MB."""
    begun = time.perf_counter()
    with subprocess.Popen(command, env=os.environ | {"LC_ALL": "C"}, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: failed with exit code {process.returncode}")
    seconds = time.perf_counter() - begun
    return {"s": seconds, "cpu_s": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1000}


def compare(folder: Path, edges: int, parts: int, memory: str, *, named: bool) -> dict[str, Any]:
    """Return the measurements of one edge list."""
    from neural_brane.files.graphs.shards import open_shards

    path, output = folder / "edges.csv", folder / "parts"
    write_edges(path, edges, named=named)
    shard = measure([*BRANE, "shard", str(path), "-o", str(output), "--parts", str(parts), "--memory", memory])
    found = open_shards(output)
    found.check()
    sorting = measure([*SORTING, "-T", str(folder), *KEYS[named], str(path), "-o", str(folder / "sorted.csv")])
    figures = {f"shard_{name}": value for name, value in shard.items()}
    figures |= {f"sort_{name}": value for name, value in sorting.items()}
    figures |= {"times": shard["s"] / sorting["s"], "file_mb": path.stat().st_size / 1e6}
    rounded = {name: round(value, 2) for name, value in figures.items()}
    return {
        "edges": edges,
        **rounded,
        "opened": [found.nodes, found.edges],
        "parts_mb": round(found.manifest.size / 1e6),
    }


def main() -> None:
    """Measure both edge lists and print the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--edges", type=int, default=100_000_000)
    parser.add_argument("--named", type=int, default=10_000_000, help="edges of the list with names")
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    record: dict[str, Any] = {"machine": describe_machine(), "load": os.getloadavg()}
    record |= {"parts": options.parts, "memory": options.memory}
    for title, edges, named in (("integers", options.edges, False), ("names", options.named, True)):
        with tempfile.TemporaryDirectory() as folder:
            record[title] = compare(Path(folder), edges, options.parts, options.memory, named=named)
    if options.json:
        print(json.dumps(record, indent=2))
        return
    for title in ("integers", "names"):
        print(title)
        print("\n".join(f"  {name:15} {value}" for name, value in record[title].items()))


if __name__ == "__main__":
    main()
