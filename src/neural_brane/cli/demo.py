"""`brane demo`: the whole way from a graph to vectors, neighbours, scores and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option, echo

if TYPE_CHECKING:
    from neural_brane.embedding import Embedding
    from neural_brane.graph import AttributedGraph

WELL_KNOWN = ("json", "asyncio", "zipfile", "unittest", "http.client", "tkinter", "math")


def demo(
    output: Annotated[Path, Option(help="Folder to write the vectors and the picture to.")] = Path("demo"),
    epochs: Annotated[
        int | None, Option(help="Train for fewer epochs than usual, to look around.", hidden=True)
    ] = None,
) -> None:
    """Learn vectors of the modules of Python's standard library, and show what they know.

    Needs no network. Imports are the links, words of names and docstrings the attributes; the topics are
    not learned from. Takes under two minutes on two cores.
    """
    from neural_brane import datasets, plot
    from neural_brane.cli.embed import train
    from neural_brane.methods.neural_brane import NeuralBrane

    graph = datasets.load("stdlib")
    model = NeuralBrane(seed=0, epochs=epochs)
    train(model, graph)
    embedding = model.embedding_
    _show_neighbours(embedding)
    _show_scores(graph, embedding)
    output.mkdir(parents=True, exist_ok=True)
    vectors, picture = output / "stdlib.npz", output / "stdlib.png"
    embedding.save(vectors)
    named = [name for name in WELL_KNOWN if name in embedding]
    plot.plot(
        embedding,
        picture,
        labels=graph.labels,
        names=named,
        title="Python's standard library by Neural-Brane",
    )
    echo(f"wrote {len(embedding):,} x {embedding.dim} vectors to {vectors} and a picture to {picture}")
    echo(f"next: brane evaluate {vectors} --labels stdlib")


def _show_neighbours(embedding: Embedding) -> None:
    from neural_brane.cli.console import show_table

    rows = [
        (name, ", ".join(f"{other} {cosine:.2f}" for other, cosine in embedding.nearest(name, k=5)))
        for name in WELL_KNOWN
        if name in embedding
    ]
    show_table(("module", "nearest modules, by cosine"), rows, fold=True)


def _show_scores(graph: AttributedGraph, embedding: Embedding) -> None:
    """Macro-F1 of the learned vectors and of the attributes alone, on the same splits.

    The regression's penalty weighs on small vectors most, and those of attributes alone are small: so both
    are also scored at one scale, where neither is favoured.
    """
    from neural_brane.cli.console import show_table
    from neural_brane.evaluate import classify
    from neural_brane.methods.attributes import Attributes

    alone = Attributes(dim=embedding.dim, seed=0).fit_transform(graph)
    sets = {"neural-brane": embedding.vectors, "attributes alone": alone.vectors}
    sets |= {f"{name}, at unit variance": vectors / vectors.std() for name, vectors in sets.items()}
    rows = []
    for name, vectors in sets.items():
        scores = classify(vectors, graph.labels).scores
        rows.append((name, *(f"{score.macro.mean:.3f} ± {score.macro.sd:.3f}" for score in scores)))
    show_table(("Macro-F1, by share trained on", "30 %", "50 %", "70 %"), rows)
