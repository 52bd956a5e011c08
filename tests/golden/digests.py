"""Digests of vectors: a change that moves code and means to change no vector must leave them as they are.

    python tests/golden/digests.py --write     compute all of them and keep them in digests.json
    python tests/golden/digests.py --full      print those of the recipes' whole schedule on citeseer (minutes)

The last bits of a sum depend on the processor's instructions and on the libraries that add it up. So the file says
which of both it was made with, and holds nothing for others.
"""

import argparse
import hashlib
import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import llvmlite.binding as llvm

from neural_brane import METHODS, AttributedGraph, load, synthetic
from neural_brane.files.storage import atomic

PATH = Path(__file__).parent / "digests.json"
LIBRARIES = ("numpy", "scipy", "numba", "llvmlite", "scikit-learn", "torch")
GRAPHS = ("stdlib", "synthetic")
SHORT = {
    "neural-brane": {"epochs": 2, "batches_per_epoch": 60},
    "deepwalk": {"walks_per_node": 2},
    "node2vec": {"walks_per_node": 2, "p": 0.5, "q": 2.0},
    "line": {"samples": 20_000},
    "pte": {"samples": 20_000},
    "deepwalk+nnmf": {"walks_per_node": 2, "nnmf_epochs": 20},
    "nnmf": {"epochs": 20},
    "tridnr": {"walks_per_node": 2},
    "graphsage": {"walks_per_node": 1},
    "graph2gauss": {"epochs": 5, "hidden": 32},
    "dgi": {"epochs": 5},
    "cca-ssg": {"epochs": 5},
    "graphmae": {"epochs": 5},
    "hne": {"epochs": 20},
    "sdne": {"epochs": 3, "hidden": 48},
    "dngr": {"epochs": 3, "hidden": 48},
    "ep": {"epochs": 5},
    "upp-sne": {"walks_per_node": 2},
}
# Settings of Neural-Brane that take another way through its kernels.
WAYS = {
    "released": {"recipe": "released"},
    "paper": {"recipe": "paper"},
    "learned part alone": {"spectral_dim": 0, "batch_size": 100},
    "sum": {"pooling": "sum"},
    "mean, hidden": {"pooling": "mean", "output": "hidden"},
    "large batch": {"batch_size": 700, "batches_per_epoch": 9},
}


def kind_of_machine() -> dict[str, str]:
    """What the last bits depend on: the processor and the libraries that compute."""
    found = {"processor": llvm.get_host_cpu_name()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def graph_of(name: str) -> AttributedGraph:
    """One of the graphs that are trained on."""
    return synthetic(600, seed=3) if name == "synthetic" else load(name)


def digest(graph: AttributedGraph, method: str, **parameters: object) -> str:
    """Sixteen hexadecimal digits of the vectors of one training."""
    settings = {"dim": 37, "seed": 11} | ({"device": "cpu"} if METHODS[method].extra else {}) | parameters
    vectors = METHODS[method](**settings).fit_transform(graph).vectors
    return hashlib.sha256(vectors.tobytes()).hexdigest()[:16]


def trainings() -> dict[str, tuple[str, str, dict]]:
    """Every training by name: its graph, its method and its parameters."""
    short = SHORT["neural-brane"]
    found = {f"{graph}: {name}": (graph, name, SHORT.get(name, {})) for graph in GRAPHS for name in METHODS}
    found |= {f"stdlib: neural-brane, {way}": ("stdlib", "neural-brane", short | how) for way, how in WAYS.items()}
    for recipe in ("default", "released", "paper"):
        found[f"citeseer: {recipe}"] = ("citeseer", "neural-brane", {"recipe": recipe, "dim": 150, "epochs": 2})
    return found


def main() -> None:
    """Write the file, or print the digests of whole schedules."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="compute all digests and keep them")
    parser.add_argument("--full", action="store_true", help="print those of the recipes' whole schedule on citeseer")
    options = parser.parse_args()
    if options.full:
        for recipe in ("default", "released", "paper"):
            print(recipe, digest(load("citeseer"), "neural-brane", recipe=recipe, dim=150), flush=True)
    if options.write:
        found = {name: digest(graph_of(graph), method, **how) for name, (graph, method, how) in trainings().items()}
        with atomic(PATH) as draft:
            draft.write_text(json.dumps({"machine": kind_of_machine(), "digests": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
