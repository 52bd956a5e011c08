"""Compare the estimates of `brane estimate` with the time and memory of `brane embed`.

    python benchmarks/estimate.py [--nodes 20000 100000] [--methods neural-brane deepwalk] [--json]

Each command runs in a new process, on synthetic graphs (10 edges and 20 attributes per node) with default settings. A
first training of each method compiles its kernels. Prints for each method and size

    estimated_mb, peak_mb      estimated memory, and peak memory of the process (VmHWM)
    memory_ratio               the first divided by the second
    estimated_s, seconds       estimated time, and time from start to end
    time_ratio                 the first divided by the second; above 1 if training stopped before its last epoch
    cpu_s                      seconds of all cores together, which other work on the machine hardly changes
    trained                    share of the triplets that were trained, if the method has triplets
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from neural_brane.experiments.store import describe_machine

COMMAND = [sys.executable, "-W", "ignore", "-c", "from neural_brane.cli import main; main()"]
SMALL = 2_000


def embed(method: str, nodes: int, output: Path) -> tuple[float, float, float]:
    """Train as a user does, and return the seconds, the seconds of all cores, and the peak memory in MB."""
    start = time.perf_counter()
    arguments = ["embed", f"synthetic:{nodes}", "--method", method, "--seed", "0", "-o", str(output)]
    process = subprocess.Popen([*COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{method} on {nodes:,} nodes failed")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / 1e6


def estimate(method: str, nodes: int) -> dict:
    """Return the estimate of `brane estimate`."""
    done = subprocess.run(
        [*COMMAND, "estimate", f"synthetic:{nodes}", "--method", method, "--json"],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def measure(method: str, nodes: int, folder: Path) -> dict[str, float]:
    """Return one row of the table."""
    from neural_brane import Embedding

    output = folder / "vectors.npz"
    expected = estimate(method, nodes)
    seconds, worked, peak = embed(method, nodes, output)
    training = Embedding.load(output).provenance.get("training", {})
    share = training.get("triplets_per_node", 0) / (expected["triplets_per_node"] or 1) or 1.0
    estimated = expected["peak"] / 1e6
    return {
        "estimated_mb": round(estimated, 1),
        "peak_mb": round(peak, 1),
        "memory_ratio": round(estimated / peak, 3),
        "estimated_s": round(expected["total_seconds"], 1),
        "seconds": round(seconds, 1),
        "time_ratio": round(expected["total_seconds"] / seconds, 2),
        "cpu_s": round(worked, 1),
        "trained": round(share, 2),
    }


def main() -> None:
    """Measure and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--methods", nargs="+", default=["neural-brane"])
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for method in options.methods:
            embed(method, SMALL, Path(folder) / "vectors.npz")
            for nodes in options.nodes:
                rows.append({"method": method, "nodes": nodes} | measure(method, nodes, Path(folder)))
                if not options.json:
                    print(*(f"{name}={value}" for name, value in rows[-1].items()), flush=True)
    if options.json:
        print(json.dumps({"machine": describe_machine(), "results": rows}, indent=1))


if __name__ == "__main__":
    main()
