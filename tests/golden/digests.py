"""Digests of vectors: a change that moves code and means to change no vector must leave them as they are.

    python tests/golden/digests.py --write [METHOD]   compute all, or those of a method, and keep them
    python tests/golden/digests.py --full             print those of the recipes' schedule on citeseer (minutes)

The last bits of a sum depend on the processor and on the libraries that compute. So digests.json keeps one set of
digests for each kind of machine seen so far, and products.npz keeps inner products of a few vectors of each training:
on a machine of a kind not seen yet, these are compared within a tolerance. A method that has changed loses its digests
of other kinds of machines.
"""

import argparse
import functools
import hashlib
import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
from threadpoolctl import threadpool_info

from neural_brane import METHODS, AttributedGraph, load, synthetic
from neural_brane.files.storage import atomic

DIGESTS, PRODUCTS = Path(__file__).parent / "digests.json", Path(__file__).parent / "products.npz"
NODES = 24  # vectors of each training whose inner products are kept
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
    """Return the processor, the kernels of BLAS and the versions of libraries: they decide the last bits."""
    blas = {one.get("architecture", "") for one in threadpool_info() if one["user_api"] == "blas"}
    found = {"processor": llvm.get_host_cpu_name(), "blas": ", ".join(sorted(blas))}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def digests_here() -> dict[str, str] | None:
    """The digests kept for this kind of machine; None where it has not been seen yet."""
    kept = json.loads(DIGESTS.read_text())
    return next((one["digests"] for one in kept if one["machine"] == kind_of_machine()), None)


def graph_of(name: str) -> AttributedGraph:
    """One of the graphs that are trained on."""
    return synthetic(600, seed=3) if name == "synthetic" else load(name)


def train(graph: AttributedGraph, method: str, **parameters: object) -> np.ndarray:
    """The vectors of one training."""
    settings = {"dim": 37, "seed": 11} | ({"device": "cpu"} if METHODS[method].extra else {}) | parameters
    return METHODS[method](**settings).fit_transform(graph).vectors


def digest(vectors: np.ndarray) -> str:
    """Sixteen hexadecimal digits that stand for every bit of the vectors."""
    return hashlib.sha256(vectors.tobytes()).hexdigest()[:16]


def products(vectors: np.ndarray) -> np.ndarray:
    """Inner products of some of the vectors, (NODES, NODES).

    They stay the same where all vectors are turned alike, as a decomposition may do on another machine.
    """
    some = vectors[np.linspace(0, len(vectors) - 1, NODES).astype(int)].astype(np.float64)
    return (some @ some.T).astype(np.float32)


def trainings() -> dict[str, tuple[str, str, dict]]:
    """Every training by name: its graph, its method and its parameters."""
    short = SHORT["neural-brane"]
    found = {f"{graph}: {name}": (graph, name, SHORT.get(name, {})) for graph in GRAPHS for name in METHODS}
    found |= {f"stdlib: neural-brane, {way}": ("stdlib", "neural-brane", short | how) for way, how in WAYS.items()}
    for recipe in ("default", "released", "paper"):
        found[f"citeseer: {recipe}"] = ("citeseer", "neural-brane", {"recipe": recipe, "dim": 150, "epochs": 2})
    return found


@functools.cache
def compute(name: str) -> np.ndarray:
    """The vectors of a training by its name."""
    graph, method, parameters = trainings()[name]
    return train(graph_of(graph), method, **parameters)


def write(method: str) -> None:
    """Keep the digests and inner products of one method, or of all; forget what other machines gave before a change."""
    kept, here = json.loads(DIGESTS.read_text()), kind_of_machine()
    names = [name for name, (_, own, _) in trainings().items() if method in (own, "all")]
    before = next((one["digests"] for one in kept if one["machine"] == here), {})
    now = before | {name: digest(compute(name)) for name in names}
    changed = {name for name in before if now[name] != before[name]}
    others = [one for one in kept if one["machine"] != here]
    for one in others:
        one["digests"] = {name: value for name, value in one["digests"].items() if name not in changed}
    with atomic(DIGESTS) as draft:
        draft.write_text(json.dumps([*others, {"machine": here, "digests": now}], indent=1) + "\n")
    found = dict(np.load(PRODUCTS)) | {name: products(compute(name)) for name in names if name in changed}
    with atomic(PRODUCTS) as draft, draft.open("wb") as file:
        np.savez_compressed(file, **found)


def main() -> None:
    """Write the files, or print the digests of whole schedules."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", nargs="?", const="all", metavar="METHOD", help="compute digests and keep them")
    parser.add_argument("--full", action="store_true", help="print those of the recipes' whole schedule on citeseer")
    options = parser.parse_args()
    if options.full:
        for recipe in ("default", "released", "paper"):
            vectors = train(load("citeseer"), "neural-brane", recipe=recipe, dim=150)
            print(recipe, digest(vectors), flush=True)
    if options.write:
        write(options.write)


if __name__ == "__main__":
    main()
