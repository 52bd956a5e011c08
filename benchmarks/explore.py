"""Measure `brane explore` in a headless Chromium without a graphics card: 5,000, 200,000 and a million nodes.

    python benchmarks/explore.py                 # all sizes; writes results/explore.json
    python benchmarks/explore.py --nodes 5000    # one size

Measures seconds from the command to its address, and from opening the address to the first picture; milliseconds of a
frame while the map moves, and from a click to the list of nearest nodes; and the server's memory beside the size of the
files. The graph is `synthetic:NODES`; the vectors are random around one centre per class.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.experiments.store import describe_machine
from neural_brane.graph.synthetic import synthetic

NODES = (5_000, 200_000, 1_000_000)
DIM = 150
CLICKS, FRAMES = 7, 12
RESULTS = Path(__file__).parent / "results" / "explore.json"
FRAME = """async count => {
  const canvas = document.querySelector('canvas.points'), box = canvas.getBoundingClientRect(), times = [];
  const send = (kind, x) => canvas.dispatchEvent(new MouseEvent(kind, {clientX: x, clientY: box.top + 200, buttons: 1,
    bubbles: true}));
  send('mousedown', box.left + 300);
  for (let at = 0; at < count; at++) {
    const begun = performance.now();
    (at % 2 ? window : canvas).dispatchEvent(new MouseEvent('mousemove', {clientX: box.left + 300 + 4 * at,
      clientY: box.top + 200, buttons: 1, bubbles: true}));
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    times.push((performance.now() - begun) / 2);
  }
  send('mouseup', box.left + 300);
  return times;
}"""


def make_files(folder: Path, nodes: int) -> tuple[Path, Path]:
    """Write a graph and vectors for it, and return both paths."""
    graph = synthetic(nodes)
    graph.save(folder / "graph.npz")
    rng = np.random.default_rng(0)
    _, classes = np.unique(graph.labels, return_inverse=True)
    centres = rng.normal(size=(classes.max() + 1, DIM)).astype(np.float32)
    vectors = centres[classes] + rng.standard_normal((nodes, DIM), np.float32)
    Embedding(vectors, graph.ids).save(folder / "vectors.npz")
    return folder / "graph.npz", folder / "vectors.npz"


def memory_of(process: int) -> dict[str, float]:
    """Return the memory of a process in MB: resident, without mapped files, and the peak."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    names = {"resident": "VmRSS", "own": "RssAnon", "peak": "VmHWM"}
    return {name: int(lines[key].split()[0]) / 1000 for name, key in names.items()}


def measure(nodes: int, folder: Path) -> dict[str, Any]:
    """Start the command, open the page, move the map, click on nodes, and return the measurements."""
    graph, vectors = make_files(folder, nodes)
    words = ["explore", str(vectors), "--graph", str(graph), "--layout", "pca", "--no-open"]
    code = "from neural_brane.cli import main; main()"
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-u", "-c", code, *words], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None  # noqa: S101
        address = process.stdout.readline().split()[-1]
        started = time.perf_counter() - begun
        found = {"nodes": nodes, "seconds_to_address": round(started, 2), **look(address)}
        size = (vectors.stat().st_size + graph.stat().st_size) / 1e6
        memory = {name: round(number) for name, number in memory_of(process.pid).items()}
        return found | {"files_mb": round(size), "server_mb": memory, "allowed_mb": round(1.5 * size + 200)}
    finally:
        process.terminate()
        process.wait()


def look(address: str) -> dict[str, Any]:
    """Return the measurements in a browser."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    flags = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
    with sync_playwright() as play:
        page = play.chromium.launch(executable_path=chromium, args=flags).new_page(
            viewport={"width": 1280, "height": 800}
        )
        begun = time.perf_counter()
        page.goto(address)
        page.wait_for_selector("body[data-state=ready]", timeout=300_000)
        picture = time.perf_counter() - begun
        frames = page.evaluate(FRAME, FRAMES)
        page.fill("#search-text", "1")
        page.press("#search-text", "Enter")
        page.wait_for_selector("table.nearest", timeout=60_000)
        clicks = []
        for _ in range(CLICKS):
            page.wait_for_timeout(200)
            clicks.append(click(page))
    return {
        "seconds_to_picture": round(picture, 2),
        "frame_ms": round(statistics.median(frames)),
        "click_ms": round(statistics.median(clicks)),
    }


def click(page: Any) -> float:
    """Return the milliseconds from a click on the nearest node in a card until that node's card is complete."""
    return float(
        page.evaluate("""() => new Promise(done => {
          const begun = performance.now(), card = document.getElementById('node');
          new MutationObserver((_, watch) => {
            if (!card.querySelector('table.nearest')) return;
            watch.disconnect();
            done(performance.now() - begun);
          }).observe(card, {childList: true, subtree: true});
          card.querySelector('table.nearest tr[data-row] button').click();
        })""")
    )


def main() -> None:
    """Measure all sizes, print the results and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="*", default=NODES)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = []
    for nodes in options.nodes:
        with tempfile.TemporaryDirectory() as folder:
            results.append(measure(nodes, Path(folder)))
        print(json.dumps(results[-1]), flush=True)
    record = {"machine": describe_machine(), "load": os.getloadavg()[0], "dim": DIM, "results": results}
    options.output.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
