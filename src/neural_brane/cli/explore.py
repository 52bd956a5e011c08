"""`brane explore` and `brane demo`: show vectors in a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from neural_brane.cli import options as o
from neural_brane.cli.embed import train
from neural_brane.cli.options import Reading, bundled
from neural_brane.cli.terminal import counting, echo, file_size, show_table
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.embedding import Embedding
    from neural_brane.explore.view import View
    from neural_brane.graph import AttributedGraph
    from neural_brane.methods.base import Embedder


SERVER = "Server"


@bundled
def explore(
    vectors: Annotated[list[str], Argument(help="Vectors, models or a dataset.")],
    reading: Reading,
    graph: o.GraphSource = None,
    model: Annotated[Path | None, o.option("file", "Model that made the first vectors.")] = None,
    layout: Annotated[str | None, o.option("map", "pca, tsne, or a file of coordinates.")] = None,
    html: Annotated[Path | None, o.option("file", "Write the page to a file instead.")] = None,
    seed: o.Seed = 0,
    port: Annotated[int, o.option("whole", "0 takes a free port.", panel=SERVER, min=0, max=65535)] = 0,
    no_open: Annotated[bool, o.flag("--no-open", "Do not open a browser.", SERVER)] = False,
) -> None:
    r"""Show vectors in a browser, on a map of all nodes.

    Trains Neural-Brane first if you name a dataset. --graph adds links,
    attributes and labels. A model contains its graph; it also explains vectors
    and suggests links. Without --layout, the page shows pca until tsne is
    ready. Only this machine can open the page; Ctrl-C closes it.

    \b
    brane explore stdlib
    brane explore m.brane
    brane explore vectors.npz --graph stdlib --html map.html
    brane explore old.npz new.npz --graph edges.csv --nodes people.csv
    """
    from neural_brane.explore.opening import open_view
    from neural_brane.files.storage import check_distinct, check_target

    if html is not None:
        check_target(html, (".html", ".htm"), ".html", ParameterError)
        check_distinct({"--html": html}, {name: name for name in (*vectors, graph) if name})
    view = open_view([find_source(one) for one in vectors], reading.read_optional(graph), model=model)
    if html is not None:
        write_page(view, html, layout, seed)
    else:
        serve(view, layout, seed, port, not no_open)


def find_source(given: str) -> Path | Embedder:
    """Return the path of a file; for the name of a dataset, return a model after fitting it to the dataset."""
    from neural_brane.files import datasets
    from neural_brane.files.datasets import registry
    from neural_brane.methods import find_method

    if given not in registry() and not given.startswith(datasets.SYNTHETIC):
        return Path(given)
    model = find_method("neural-brane")(seed=0)
    train(model, datasets.load(given))
    return model


def write_page(view: View, html: Path, layout: str | None, seed: int) -> None:
    """Write the page with its data to one file."""
    from neural_brane.explore.server import check_size, write_static

    check_size(view)
    make_layout(view, layout or default_layout(view), seed)
    left_out = write_static(view, html)
    echo(f"wrote a map of {len(view.nodes):,} nodes to {html} ({file_size(html)}); open it in a browser")
    echo(f"left out of the file: {left_out}")


def default_layout(view: View) -> str:
    """Return tsne if it is installed and takes minutes at most, otherwise pca."""
    from importlib.util import find_spec

    from neural_brane.explore.opening import MOST_TSNE

    return "tsne" if find_spec("openTSNE") and len(view.nodes) <= MOST_TSNE else "pca"


def make_layout(view: View, layout: str, seed: int) -> None:
    """Compute a map for each file of vectors, and show progress."""
    from neural_brane.explore.opening import lay_out

    with counting("map") as report:
        lay_out(view, layout, seed=seed, progress=report)


def serve(view: View, layout: str | None, seed: int, port: int, open_page: bool) -> None:
    """Serve the page until Ctrl-C."""
    from neural_brane.explore.opening import Making
    from neural_brane.explore.server import Server

    making = None
    make_layout(view, layout or "pca", seed)
    if layout is None and default_layout(view) == "tsne":
        making = Making(view, seed=seed)
    try:
        server = Server(view, port=port, making=making.state if making else lambda: None)
    except OSError as failure:
        raise ParameterError(
            f"--port {port} is not free ({failure.strerror}); choose another, or leave --port out"
        ) from None
    echo(f"{view.title}: {len(view.nodes):,} nodes at {server.address}")
    echo("press Ctrl-C to close the page")
    if making is not None:
        making.start()
    if open_page:
        webbrowser.open(server.address)
    try:
        server.serve()
    except KeyboardInterrupt:
        echo("the page is closed")
    finally:
        if making is not None:
            making.stop()
        server.close()


WELL_KNOWN = ("json", "asyncio", "zipfile", "unittest", "http.client", "tkinter", "math")
RIVALS = {"propagated-attributes": "joint SVD", "attributes": "attributes alone", "deepwalk": "DeepWalk"}
SHARES = (0.3, 0.5, 0.7)


def demo(
    output: Annotated[Path, o.option("folder", "Write the files here.")] = Path("demo"),
    epochs: Annotated[int | None, Option(help="Number of epochs, for a shorter demo.", hidden=True)] = None,
) -> None:
    r"""Learn vectors of Python's standard library, and draw a map.

    The nodes are modules, the links imports, the attributes words of names and
    docstrings. The topics of the modules are used only for the scores. Takes
    under two minutes on two cores and needs no network.

    \b
    brane demo
    brane demo --output folder
    """
    from neural_brane.evaluate import map
    from neural_brane.explore.opening import open_view
    from neural_brane.files import datasets
    from neural_brane.files.storage import check_writable
    from neural_brane.methods.neural_brane import NeuralBrane

    vectors, picture, page = output / "stdlib.npz", output / "stdlib.png", output / "map.html"
    check_writable(output, ParameterError, folder=True)
    graph = datasets.load("stdlib")
    model = NeuralBrane(seed=0, epochs=epochs)
    train(model, graph)
    embedding = model.embedding_
    nearest = {name: embedding.nearest(name, k=5) for name in WELL_KNOWN if name in embedding}
    rows = [(name, ", ".join(f"{one} {cosine:.2f}" for one, cosine in found)) for name, found in nearest.items()]
    show_table(("module", "nearest modules, by cosine"), rows, fold=True)
    advice = _show_scores(graph, embedding)
    output.mkdir(exist_ok=True)
    embedding.save(vectors)
    map.plot(
        embedding,
        picture,
        labels=graph.labels,
        names=list(nearest),
        title="Python's standard library by Neural-Brane",
    )
    echo(f"wrote {len(embedding):,} x {embedding.dim} vectors to {vectors} and a picture to {picture}")
    echo(advice)
    write_page(open_view([vectors], graph), page, None, seed=0)
    echo(f"to explore the vectors in a browser: brane explore {vectors} --graph stdlib")


def _show_scores(graph: AttributedGraph, embedding: Embedding) -> str:
    """Print Macro-F1 of four methods on the same splits, and return a line of advice."""
    from neural_brane.cli.terminal import show_table
    from neural_brane.evaluate import classify
    from neural_brane.methods import METHODS

    vectors = {"neural-brane": embedding.vectors}
    for method, heading in RIVALS.items():
        vectors[heading] = METHODS[method](dim=embedding.dim, seed=0).fit_transform(graph).vectors
    scores = {name: classify(rows, graph.labels, train=SHARES).scores for name, rows in vectors.items()}
    rows = [
        (name, *(f"{one.macro.mean:.3f} ± {one.macro.sd:.3f}" for one in by_share)) for name, by_share in scores.items()
    ]
    show_table(("Macro-F1, by share of training nodes", *(f"{share:.0%}" for share in SHARES)), rows)
    means = {name: by_share[1].macro.mean for name, by_share in scores.items()}
    best, second, *_ = sorted(means, key=lambda name: -means[name])
    lead = f"{means[best] - means[second]:.3f} better than {second} at {SHARES[1]:.0%}"
    return f"{best} predicts these topics best, {lead}; to compare methods on your graph: brane compare GRAPH"
