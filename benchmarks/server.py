"""Measure the server of `brane explore` with 300 half-open connections, and then 200 requests at once beside them.

    python benchmarks/server.py                   # writes results/server.json
    python benchmarks/server.py --before FOLDER   # the package in this folder too, such as an older src/

A half-open connection sends the first line of a request and nothing more. Measures the server's threads, the seconds
from a request to its whole answer, the requests without an answer, and the bytes that the command prints after its
address, while it also gets two malformed requests.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from explore import make_files

from neural_brane.experiments.store import describe_machine

NODES, HALF_OPEN, REQUESTS = 5_000, 300, 200
MALFORMED = (
    "GET x HTTP/1.1\r\nHost: {host}\r\n\r\n",
    "POST {path}api/count HTTP/1.1\r\nHost: {host}\r\nContent-Length: 8\r\n\r\nhalf",
)
TIMEOUT = 120.0  # seconds until a request counts as unanswered
RESULTS = Path(__file__).parent / "results" / "server.json"
SOURCE = Path(__file__).parents[1] / "src"


def threads_of(process: int) -> int:
    """Return the number of threads of a process."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return int(lines["Threads"])


def ask(address: str) -> float | None:
    """Return the seconds that a list of all names takes, or None if there is no answer."""
    begun = time.perf_counter()
    try:
        with urllib.request.urlopen(f"{address}api/names", timeout=TIMEOUT) as answer:  # noqa: S310 - our own server
            answer.read()
    except OSError:
        return None
    return time.perf_counter() - begun


def load_server(process: int, address: str) -> dict[str, Any]:
    """Return the measurements of a server that has just started."""
    host, _, path = address.removeprefix("http://").partition("/")
    where = ("127.0.0.1", int(host.rpartition(":")[2]))
    threads, halves = {"alone": threads_of(process)}, []
    for sent in MALFORMED:
        with socket.create_connection(where, timeout=TIMEOUT) as connection:
            connection.sendall(sent.format(host=host, path=f"/{path}").encode())
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)
    for _ in range(HALF_OPEN):
        halves.append(socket.create_connection(where, timeout=TIMEOUT))
        halves[-1].sendall(b"GET / HTTP/1.1\r\n")
    ask(address)
    threads["half_open"] = threads_of(process)
    with ThreadPoolExecutor(REQUESTS) as pool:
        asked = [pool.submit(ask, address) for _ in range(REQUESTS)]
        most = 0
        while not all(one.done() for one in asked):
            most = max(most, threads_of(process))
            time.sleep(0.005)
    threads["requests"] = most
    for half in halves:
        half.close()
    seconds = [found for one in asked if (found := one.result()) is not None]
    return {
        "threads": threads,
        "unanswered": REQUESTS - len(seconds),
        "median_seconds": round(statistics.median(seconds), 3),
        "slowest_seconds": round(max(seconds), 3),
    }


def measure(source: Path, folder: Path) -> dict[str, Any]:
    """Start the command with the package in `source`, load its server, and return the measurements."""
    graph, vectors = make_files(folder, NODES)
    words = ["explore", str(vectors), "--graph", str(graph), "--layout", "pca", "--no-open"]
    command = [sys.executable, "-u", "-c", "from neural_brane.cli import main; main()", *words]
    environment = os.environ | {"PYTHONPATH": str(source)}
    with (folder / "stderr").open("wb") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
        try:
            assert process.stdout is not None  # noqa: S101
            address = process.stdout.readline().split()[-1]
            process.stdout.readline()  # how to close the page
            found = load_server(process.pid, address)
        finally:
            process.terminate()
            rest = process.communicate()[0].replace("the page is closed\n", "")
    return found | {"stdout_bytes": len(rest), "stderr_bytes": (folder / "stderr").stat().st_size}


def main() -> None:
    """Measure this package and perhaps another, print the results and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = {}
    for name, source in (("before", options.before), ("now", SOURCE)):
        if source is not None:
            with tempfile.TemporaryDirectory() as folder:
                results[name] = measure(source, Path(folder))
            print(name, json.dumps(results[name]), flush=True)
    settings = {"nodes": NODES, "half_open": HALF_OPEN, "requests": REQUESTS}
    record = {"machine": describe_machine(), "load": os.getloadavg()[0], **settings, "results": results}
    options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
