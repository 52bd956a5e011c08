"""`brane demo`: the whole way from a graph to vectors, neighbours, scores and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from neural_brane.cli.terminal import echo
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.embedding import Embedding
    from neural_brane.graph import AttributedGraph

WELL_KNOWN = ("json", "asyncio", "zipfile", "unittest", "http.client", "tkinter", "math")
RIVALS = {"propagated-attributes": "joint SVD", "attributes": "attributes alone", "deepwalk": "DeepWalk"}
SHARES = (0.3, 0.5, 0.7)


def demo(
    output: Annotated[Path, Option(help="Folder to write the vectors and the picture to.")] = Path("demo"),
    epochs: Annotated[
        int | None, Option(help="Train for fewer epochs than usual, to look around.", hidden=True)
    ] = None,
) -> None:
    """Learn vectors of Python's standard library, and look at them.

    Needs no network. Imports are the links, words of names and docstrings the attributes; the topics are
    not learned from. Ends with a map of all modules to open in a browser. Takes under two minutes on two cores.
    """
    from neural_brane.cli.embed import train
    from neural_brane.cli.explore import write_page
    from neural_brane.evaluate import map
    from neural_brane.explore.opening import open_view
    from neural_brane.files import datasets
    from neural_brane.files.storage import check_writable
    from neural_brane.methods.neural_brane import NeuralBrane

    vectors, picture, page = output / "stdlib.npz", output / "stdlib.png", output / "map.html"
    for path in (vectors, picture, page):
        check_writable(path, ParameterError)
    graph = datasets.load("stdlib")
    model = NeuralBrane(seed=0, epochs=epochs)
    train(model, graph)
    embedding = model.embedding_
    _show_neighbours(embedding)
    advice = _show_scores(graph, embedding)
    embedding.save(vectors)
    map.plot(
        embedding,
        picture,
        labels=graph.labels,
        names=[name for name in WELL_KNOWN if name in embedding],
        title="Python's standard library by Neural-Brane",
    )
    echo(f"wrote {len(embedding):,} x {embedding.dim} vectors to {vectors} and a picture to {picture}")
    echo(advice)
    write_page(open_view([vectors], graph), page, None, seed=0)
    echo(f"look closer, with everything: brane explore {vectors} --graph stdlib")


def _show_neighbours(embedding: Embedding) -> None:
    from neural_brane.cli.terminal import show_table

    rows = [
        (name, ", ".join(f"{other} {cosine:.2f}" for other, cosine in embedding.nearest(name, k=5)))
        for name in WELL_KNOWN
        if name in embedding
    ]
    show_table(("module", "nearest modules, by cosine"), rows, fold=True)


def _show_scores(graph: AttributedGraph, embedding: Embedding) -> str:
    """Macro-F1 of four methods, each at the scale that it writes, on the same splits; returns a word of advice."""
    from neural_brane.cli.terminal import show_table
    from neural_brane.evaluate import classify
    from neural_brane.methods import METHODS

    vectors = {"neural-brane": embedding.vectors}
    for method, heading in RIVALS.items():
        vectors[heading] = METHODS[method](dim=embedding.dim, seed=0).fit_transform(graph).vectors
    scores = {name: classify(some, graph.labels, train=SHARES).scores for name, some in vectors.items()}
    rows = [
        (name, *(f"{score.macro.mean:.3f} ± {score.macro.sd:.3f}" for score in found)) for name, found in scores.items()
    ]
    show_table(("Macro-F1, by share trained on", *(f"{share:.0%}" for share in SHARES)), rows)
    means = {name: found[1].macro.mean for name, found in scores.items()}
    best, second, *_ = sorted(means, key=lambda name: -means[name])
    lead = f"{best} tells these topics best, {means[best] - means[second]:.3f} ahead of {second} at {SHARES[1]:.0%}"
    return f"{lead}; which method suits your own graph: brane compare GRAPH --labels FILE"
