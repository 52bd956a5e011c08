"""The largest memory of each rank, on a graph whose tables are 4 GB.

    python benchmarks/distributed_memory.py [--gigabytes 4] [--ranks 1 2 4] [--steps 5]

The graph has few nodes and many attributes, of which a node has some: it stays small, and its tables do not. A few
steps of the released recipe are taken, without checkpoints and without the vectors. A rank may have
(tables + parts of the graph) / ranks x 1.3 + 300 MB. Three figures stand beside that: its peak of resident memory; the
peak without the pages of files, of PyTorch's libraries for the most part, which the ranks of a host share; and the peak
less that of a rank that has imported everything and trained a graph of no size.

Then the same on the most ranks with RLIMIT_AS: PyTorch maps libraries and threads map stacks, so the address space that
such an idle rank has is measured first. Added to it is 0.6 of the whole tables; the job must end well all the same. The
share of a rank and what it needs beside it must be less than that, so at least four ranks are wanted.
Written to results/distributed_memory.json and results/distributed_memory.txt unless --gigabytes is given.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse

RESULTS = Path(__file__).parent / "results"
NODES, ATTRIBUTES_OF_A_NODE, WIDTH = 20_000, 20, 512
ALLOWED, MORE = 1.3, 300e6


def make_graph(rows: int, folder: Path) -> None:
    """A ring of nodes, each with a few of `rows` attributes, in parts."""
    from neural_brane import AttributedGraph
    from neural_brane.files.graphs.parts import write_shards

    rng = np.random.default_rng(0)
    nodes = np.arange(NODES)
    ends = (nodes + 1) % NODES
    ring = sparse.coo_array((np.ones(2 * NODES, np.float32), (np.r_[nodes, ends], np.r_[ends, nodes]))).tocsr()
    own = np.repeat(nodes, ATTRIBUTES_OF_A_NODE)
    entries = (own, rng.integers(0, rows, len(own)))
    attributes = sparse.coo_array((np.ones(len(own), np.float32), entries), shape=(NODES, rows)).tocsr()
    attributes.data[:] = 1
    write_shards(AttributedGraph.from_sparse(ring, attributes), folder, 4)


def train(folder: Path, steps: int, limit: int, output: Path) -> None:
    """What a rank does: some steps, then tell how much memory it had."""
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    from neural_brane.distributed.embedding import Ranks, ShardFacts
    from neural_brane.distributed.embedding import train as train_ranks
    from neural_brane.distributed.exchange import Exchange
    from neural_brane.distributed.launch import join
    from neural_brane.files.graphs.parts import open_shards
    from neural_brane.methods.neural_brane import NeuralBrane

    with join("cpu") as job:
        shards, host = open_shards(folder), Exchange(job.group)
        method = NeuralBrane(
            recipe="released", dim=WIDTH + 16, attribute_dim=WIDTH, hidden=32, epochs=1, batches_per_epoch=steps,
            batch_size=512, seed=0, threads=job.threads,
        )  # fmt: skip
        settings = method.settings_by(ShardFacts(shards, host)) | {"progress": None, "threads": job.threads}
        trained = train_ranks(shards, Ranks(host, host, False), settings, 0)
        tables = sum(table.local.numel() * 4 for table in trained.model.tables)
        told = {"rank": job.rank, "tables": tables, **memory()}
        (output / f"{job.rank}.json").write_text(json.dumps(told))


def memory() -> dict[str, int]:
    """The peaks of this process in bytes, resident and of its address space, and the pages of files that it has now."""
    words = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    names = {"resident": "VmHWM", "address_space": "VmPeak", "of_files": "RssFile"}
    return {name: _bytes(words[word]) for name, word in names.items()}


def _bytes(text: str) -> int:
    return 1024 * int(text.split()[0])


def run(folder: Path, ranks: int, steps: int, limit: int = 0) -> list[dict]:
    """Start ranks; returns what each told."""
    with tempfile.TemporaryDirectory() as output:
        own = [os.path.abspath(__file__), "--rank", str(folder), str(steps), str(limit), output]
        options = ["--nproc-per-node", str(ranks), "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
        settings = os.environ | {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        subprocess.run([sys.executable, "-m", "torch.distributed.run", *options, *own], check=True, env=settings)
        return [json.loads(path.read_text()) for path in sorted(Path(output).iterdir())]


def measure(options: argparse.Namespace, folder: Path) -> dict:
    """Peaks on each number of ranks, beside what a rank may have, and the run with little address space."""
    rows = int(options.gigabytes * 1e9 / (4 * WIDTH))
    make_graph(1_000, folder / "small")
    make_graph(rows, folder / "large")
    parts = sum(path.stat().st_size for path in (folder / "large").glob("part-*/*.npy"))
    results: dict = {"graph": {"nodes": NODES, "attributes": rows, "bytes": parts}, "runs": []}
    for ranks in options.ranks:
        idle = max(told["resident"] for told in run(folder / "small", ranks, options.steps))
        found = run(folder / "large", ranks, options.steps)
        tables = sum(told["tables"] for told in found)
        allowed = ALLOWED * (tables + parts) / ranks + MORE
        peak = max(told["resident"] for told in found)
        private = max(told["resident"] - told["of_files"] for told in found)
        figures = {"tables": tables, "idle": idle, "peak": peak, "private": private, "own": peak - idle}
        results["runs"].append({"ranks": ranks, **figures, "allowed": int(allowed)})
        print(results["runs"][-1], flush=True)
    ranks = max(options.ranks)
    idle = max(told["address_space"] for told in run(folder / "small", ranks, options.steps))
    limit = idle + int(0.6 * tables)
    told = run(folder / "large", ranks, options.steps, limit)
    results["limited"] = {"ranks": ranks, "idle": idle, "limit": limit, "tables": tables, "ended": len(told) == ranks}
    return results


def table(results: dict) -> str:
    """A table in Markdown, and a sentence on the limited run."""
    heads = ["ranks", "tables", "a rank idle", "largest rank", "without pages of files", "without idle", "allowed"]
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for one in results["runs"]:
        sizes = [f"{one[name] / 1e9:.2f} GB" for name in ("tables", "idle", "peak", "private", "own", "allowed")]
        lines.append(f"| {one['ranks']} | {' | '.join(sizes)} |")
    limited = {name: f"{value / 1e9:.2f} GB" for name, value in results["limited"].items() if name != "ended"}
    told = (
        f"With the address space of each of {results['limited']['ranks']} ranks limited to {limited['limit']}, of "
        f"which an idle rank has {limited['idle']}, the job with tables of {limited['tables']} ended well."
    )
    return "\n".join([*lines, "", told, ""])


def main() -> None:
    """Measure and tell."""
    if sys.argv[1:2] == ["--rank"]:
        folder, steps, limit, output = sys.argv[2:]
        train(Path(folder), int(steps), int(limit), Path(output))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=4.0)
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--steps", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        results = measure(options, Path(folder))
    print(table(results))
    if options.gigabytes == parser.get_default("gigabytes"):
        from neural_brane.experiments.store import describe_machine
        from neural_brane.files.storage import atomic

        with atomic(RESULTS / "distributed_memory.json") as draft:
            draft.write_text(json.dumps({"machine": describe_machine(), **results}, indent=1) + "\n")
        with atomic(RESULTS / "distributed_memory.txt") as draft:
            draft.write_text(table(results))
    if any(one["private"] > one["allowed"] for one in results["runs"]):
        raise SystemExit("a rank had more memory than it may")


if __name__ == "__main__":
    main()
