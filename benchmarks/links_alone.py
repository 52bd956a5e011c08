"""Compare methods on graphs without attributes.

    python benchmarks/links_alone.py [--graphs stdlib caltech36 reed98 citeseer] [--seeds 1]

The attributes of the graphs are removed, methods learn from the links with their defaults, and a classifier predicts
the labels. The score is Macro-F1 with half of the labelled nodes for training, the mean of ten splits. Run k has seed
k. Seconds measure `fit_transform`; other work on the machine changes them. Writes results/links_alone.json after every
graph.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

from neural_brane import METHODS, AttributedGraph, classify, load
from neural_brane.experiments.store import describe_machine
from neural_brane.files.storage import atomic

PATH = Path(__file__).parent / "results" / "links_alone.json"
COMPARED = ("neural-brane", "propagated-attributes", "deepwalk", "line")


def without_attributes(graph: AttributedGraph) -> AttributedGraph:
    """Return the graph without its attributes."""
    none = graph.attributes[:, :0]
    return AttributedGraph(graph.adjacency, none, graph.ids, graph.attribute_names[:0], graph.labels, graph.name)


def run(graph: AttributedGraph, title: str, seed: int) -> dict[str, object]:
    """Train a method once, and return its score and seconds."""
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # nodes without links have the vector zero
        vectors = METHODS[title](seed=seed).fit_transform(graph).vectors
    seconds = time.perf_counter() - began
    score = classify(vectors, graph.labels, train=[0.5]).scores[0].macro.mean
    print(f"{graph.name:12} {title:22} Macro-F1 {score:.3f}  {seconds:.1f} s", flush=True)
    return {"graph": graph.name, "method": title, "seed": seed, "macro_f1": score, "seconds": seconds}


def main() -> None:
    """Run all trainings, print the scores and write them to the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=["stdlib", "caltech36", "reed98", "citeseer"])
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    rows = []
    for name in options.graphs:
        graph = without_attributes(load(name))
        rows += [run(graph, title, seed) for title in COMPARED for seed in range(options.seeds)]
        with atomic(PATH) as draft:
            about = {"machine": describe_machine(), "options": vars(options), "rows": rows}
            draft.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
