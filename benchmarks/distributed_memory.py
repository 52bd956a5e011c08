"""Measure the peak memory of each rank, on a graph whose tables have 4 GB.

    python benchmarks/distributed_memory.py [--gigabytes 4] [--ranks 1 2 4] [--steps 5]

The graph has few nodes and many attributes, so it is small and its tables are large. The job takes a few steps of the
released recipe, without checkpoints and without writing vectors. The allowed memory of a rank is
(tables + parts of the graph) / ranks x 1.3 + 300 MB. It is compared with three numbers: the peak of resident memory;
the peak without pages of files, mostly PyTorch's libraries, which the ranks of a host share; and the peak minus that of
an idle rank, which has imported everything and trained a tiny graph.

Then the job runs again on the largest number of ranks with a limit of the address space (RLIMIT_AS), and must succeed.
PyTorch maps libraries and threads map stacks, so the address space of an idle rank is measured first; the limit is this
plus 0.6 of all tables. A rank's share of the tables and its other arrays must fit into that, so use at least four
ranks. Results are written to results/distributed_memory.json and results/distributed_memory.txt, unless --gigabytes
changes the size.
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
    """Write a ring of nodes, each with a few of `rows` attributes, as a folder of shards."""
    from neural_brane import AttributedGraph
    from neural_brane.files.graphs.shards import write_shards

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
    """Train some steps as one rank, and write its memory to a file."""
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    from neural_brane.distributed.embedding import Ranks, ShardFacts
    from neural_brane.distributed.embedding import train as train_ranks
    from neural_brane.distributed.exchange import Exchange
    from neural_brane.distributed.launch import join
    from neural_brane.files.graphs.shards import open_shards
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
        record = {"rank": job.rank, "tables": tables, **memory()}
        (output / f"{job.rank}.json").write_text(json.dumps(record))


def memory() -> dict[str, int]:
    """Return the bytes of this process: peak resident memory, peak address space, and current pages of files."""
    words = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    names = {"resident": "VmHWM", "address_space": "VmPeak", "of_files": "RssFile"}
    return {name: _bytes(words[word]) for name, word in names.items()}


def _bytes(text: str) -> int:
    return 1024 * int(text.split()[0])


def run(folder: Path, ranks: int, steps: int, limit: int = 0) -> list[dict]:
    """Start ranks, and return the record of each."""
    with tempfile.TemporaryDirectory() as output:
        own = [os.path.abspath(__file__), "--rank", str(folder), str(steps), str(limit), output]
        options = ["--nproc-per-node", str(ranks), "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
        settings = os.environ | {"OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        subprocess.run([sys.executable, "-m", "torch.distributed.run", *options, *own], check=True, env=settings)
        return [json.loads(path.read_text()) for path in sorted(Path(output).iterdir())]


def measure(options: argparse.Namespace, folder: Path) -> dict:
    """Return the peaks for each number of ranks with the allowed memory, and the result of the limited run."""
    rows = int(options.gigabytes * 1e9 / (4 * WIDTH))
    make_graph(1_000, folder / "small")
    make_graph(rows, folder / "large")
    parts = sum(path.stat().st_size for path in (folder / "large").glob("part-*/*.npy"))
    results: dict = {"graph": {"nodes": NODES, "attributes": rows, "bytes": parts}, "runs": []}
    for ranks in options.ranks:
        idle = max(one["resident"] for one in run(folder / "small", ranks, options.steps))
        found = run(folder / "large", ranks, options.steps)
        tables = sum(one["tables"] for one in found)
        allowed = ALLOWED * (tables + parts) / ranks + MORE
        peak = max(one["resident"] for one in found)
        private = max(one["resident"] - one["of_files"] for one in found)
        figures = {"tables": tables, "idle": idle, "peak": peak, "private": private, "own": peak - idle}
        results["runs"].append({"ranks": ranks, **figures, "allowed": int(allowed)})
        print(results["runs"][-1], flush=True)
    ranks = max(options.ranks)
    idle = max(one["address_space"] for one in run(folder / "small", ranks, options.steps))
    limit = idle + int(0.6 * tables)
    ended = len(run(folder / "large", ranks, options.steps, limit)) == ranks
    results["limited"] = {"ranks": ranks, "idle": idle, "limit": limit, "tables": tables, "ended": ended}
    return results


def table(results: dict) -> str:
    """Return a Markdown table, and a sentence on the limited run."""
    heads = ["ranks", "tables", "idle rank", "largest rank", "without pages of files", "minus idle rank", "allowed"]
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for one in results["runs"]:
        sizes = [f"{one[name] / 1e9:.2f} GB" for name in ("tables", "idle", "peak", "private", "own", "allowed")]
        lines.append(f"| {one['ranks']} | {' | '.join(sizes)} |")
    limited = {name: f"{value / 1e9:.2f} GB" for name, value in results["limited"].items() if name != "ended"}
    sentence = (
        f"With an address space of at most {limited['limit']} for each of {results['limited']['ranks']} ranks (an idle "
        f"rank has {limited['idle']}), the job with tables of {limited['tables']} succeeded."
    )
    return "\n".join([*lines, "", sentence, ""])


def main() -> None:
    """Measure, print the table and write the files."""
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
        raise SystemExit("a rank used more memory than allowed")


if __name__ == "__main__":
    main()
