"""Fixtures that many tests share."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from neural_brane.graph import AttributedGraph

if not Path("/dev/nvidiactl").exists():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # kernels of the GPU on the CPU; Triton reads it once, on import


# Tests that take more than a few seconds: whole trainings, other processes, browsers.
SLOW = (
    "cli/", "distributed/", "docs/", "experiments/", "explore/", "faults/", "files/checkpoints/", "files/datasets/",
    "files/models/", "files/shards/", "files/test_new_format.py", "files/test_vectors.py", "golden/",
    "graph/test_numbering.py", "kernels/", "methods/neural_brane/", "methods/test_deepwalk.py",
    "methods/test_identity.py", "methods/test_lane.py", "methods/test_line.py", "methods/test_registry.py",
    "methods/test_update.py", "test_contract.py", "test_estimate.py", "test_scikit_learn.py",
)  # fmt: skip
# Tests that `make test-long` runs: kills, random inputs, kernels of the GPU in an interpreter, benchmarks, builds.
LONG = (
    "distributed/test_checkpoints.py", "distributed/test_equal.py::test_ranks_train_the_model_of_one_process[max-4]",
    "distributed/test_faults.py", "distributed/test_oracle.py",
    "experiments/comparison/test_run.py::test_a_comparison_that_was_killed",
    "experiments/reproduce/test_run.py::test_a_run_that_is_killed", "faults/test_kill.py", "faults/test_readers.py",
    "faults/test_tables.py",
    "kernels/gpu/", "methods/neural_brane/test_engines.py::test_a_run_on_the_gpu",
    "methods/neural_brane/test_engines.py::test_the_gpu_learns", "methods/neural_brane/test_published_scores.py",
    "sampling/test_triplets_gpu.py", "test_benchmarks.py",
    "test_estimate.py::test_memory_is_what_the_arrays_take[grarep]",
    "test_estimate.py::test_memory_is_what_the_arrays_take[pane]", "test_wheel.py",
)  # fmt: skip
NOT_LONG = ("kernels/gpu/test_gpu.py",)  # one file of the GPU's kernels is always tested
# These take longest, so they begin first: at the end, every process then still has work.
LONGEST = (
    "test_wheel.py", "faults/test_readers.py", "faults/test_kill.py", "kernels/gpu/test_trainer.py", "golden/",
    "docs/test_blocks.py", "docs/test_examples.py", "cli/test_demo.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make quick` and `make test` leave out, and put first what takes longest."""
    here = Path(__file__).parent
    ranks = {}
    for item in items:
        name = str(item.path.relative_to(here)) if item.path.is_relative_to(here) else ""
        if name.startswith(SLOW):
            item.add_marker(pytest.mark.slow)
        if f"{name}::{item.name}".startswith(LONG) and not name.startswith(NOT_LONG):
            item.add_marker(pytest.mark.long)
        longer = [place for place, start in enumerate(LONGEST) if name.startswith(start)]
        ranks[item] = longer[0] if longer else len(LONGEST) + (not name.startswith(SLOW))
    items.sort(key=ranks.__getitem__)


@pytest.fixture(autouse=True, scope="session")
def heed_signals() -> None:
    """Undo the effect of `nohup` and of a shell's `&`, under which the tests and their children would ignore signals.

    Children get the default action. The tests themselves need Ctrl-C, and live on when the terminal is closed.
    """
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture
def small_graph() -> AttributedGraph:
    """A graph of twelve people."""
    return people()


@pytest.fixture(scope="session")
def fitted() -> Callable[[str], Any]:
    """A function that gives a method by its name, fitted to `small_graph` once for all tests: they do not change it."""
    from neural_brane import METHODS

    graph = people()

    @cache
    def fit(name: str) -> Any:
        if extra := METHODS[name].extra:
            pytest.importorskip(extra, reason=f"{name} needs {extra}: pip install 'neural-brane[{extra}]'")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # so short a training learns little
            return METHODS[name](**METHODS[name].small | {"dim": 8, "seed": 1}).fit(graph)

    return fit


def people() -> AttributedGraph:
    """Twelve people in two separate circles, with every oddity a real graph has.

    ann has a self-loop, ian no attributes, kim neither neighbours nor a label, and the weights differ.
    """
    edges = {
        ("ann", "bob"): 1.0,
        ("ann", "cat"): 2.0,
        ("ann", "ann"): 1.0,
        ("bob", "cat"): 0.5,
        ("cat", "dan"): 1.0,
        ("dan", "eve"): 3.0,
        ("eve", "fay"): 1.0,
        ("bob", "fay"): 1.0,
        ("gus", "hal"): 1.0,
        ("hal", "ian"): 2.5,
        ("gus", "ian"): 1.0,
        ("ian", "joy"): 1.0,
        ("joy", "leo"): 4.0,
        ("gus", "leo"): 1.0,
    }
    attributes = {
        "ann": ["chess", "opera"],
        "bob": ["chess"],
        "cat": ["chess", "opera", "tea"],
        "dan": ["opera", "tea"],
        "eve": ["tea"],
        "fay": ["chess", "tea"],
        "gus": ["rugby", "beer"],
        "hal": ["rugby"],
        "joy": {"beer": 2.0, "tea": 1.0},
        "kim": ["beer", "rugby"],
        "leo": ["beer"],
    }
    ids = ["ann", "bob", "cat", "dan", "eve", "fay", "gus", "hal", "ian", "joy", "kim", "leo"]
    circle = {name: "town" if name < "gus" else "club" for name in ids if name != "kim"}
    return AttributedGraph.from_edges(
        list(edges), list(edges.values()), attributes=attributes, labels=circle, ids=ids, name="small"
    )


@pytest.fixture
def real_data() -> Path:
    """The folder of published datasets; skips the test where there is none."""
    folder = os.environ.get("NEURAL_BRANE_DATA", "")
    if not Path(folder, "citeseer").is_dir():
        pytest.skip("set NEURAL_BRANE_DATA to a folder of the published datasets to run this test")
    return Path(folder)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A headless Chromium for the tests of a file; skips them where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="install playwright to open pages in a browser")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("install Chromium to open pages in a browser")
    with playwright.sync_playwright() as play:
        drawing = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader"]  # WebGL without a graphics card
        yield play.chromium.launch(executable_path=chromium, args=["--no-sandbox", *drawing])


@pytest.fixture
def load_script(monkeypatch) -> Callable[[str], ModuleType]:
    """A function that gives a file of scripts/ as a module."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "scripts")  # some import others

    def load(name: str) -> ModuleType:
        path = Path(__file__).parents[1] / "scripts" / f"{name}.py"
        specification = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="session")
def skip_gram():
    """The definition of `kernels.sgns` in plain NumPy: `step`, and `train`, which takes the items of tiles in order.

    The learning rate falls linearly over the rounds, and within a round over each tile.
    """

    def step(source, target, row, rows, sign, rate):
        """Score all rows before changing any."""
        slopes = -sign / (1 + np.exp(sign * (target[rows] @ source[row])))  # derivatives of −Σ ln σ(sign × score)
        own = source[row].copy()
        for hit, slope in zip(rows, slopes, strict=True):
            source[row] -= rate * slope * target[hit]
            target[hit] -= rate * slope * own

    def train(source, target, tiles, first_rate, last_rate):
        fall = (first_rate - last_rate) / len(tiles.schedule)
        for turn, parallel_tiles in enumerate(tiles.schedule):
            for tile in parallel_tiles:
                first, last = tiles.starts[tile : tile + 2]
                for k in range(first, last):
                    row, hit = tiles.items[k]
                    others = tiles.negatives[k]
                    rows, sign = ([hit], 1) if hit >= 0 else (others[others >= 0], -1)
                    step(source, target, row, rows, sign, first_rate - fall * (turn + (k - first) / (last - first)))

    return SimpleNamespace(step=step, train=train)
