"""`brane explore`: look at vectors in a browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from neural_brane.cli.terminal import echo
from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.explore.view import View
    from neural_brane.graph import AttributedGraph
    from neural_brane.methods.base import Embedder

READING = "Reading the graph"


def explore(
    vectors: Annotated[
        list[str],
        Argument(
            help="Files of vectors of the same nodes, or of models (.brane); or a dataset, to learn vectors from."
        ),
    ],
    graph: Annotated[
        str | None, Option(help="The graph of the nodes: a dataset's name or a file.", rich_help_panel=READING)
    ] = None,
    attributes: Annotated[
        Path | None, Option(help="Attribute file that goes with the graph file.", rich_help_panel=READING)
    ] = None,
    labels: Annotated[
        Path | None, Option(help="Label file that goes with the graph file.", rich_help_panel=READING)
    ] = None,
    nodes: Annotated[
        Path | None, Option(help="Table of nodes that goes with a table of edges.", rich_help_panel=READING)
    ] = None,
    id_column: Annotated[
        str | None, Option("--id", help="Column of ids in the table of nodes.", rich_help_panel=READING)
    ] = None,
    label_column: Annotated[
        str | None, Option("--label", help="Column of labels in the table of nodes.", rich_help_panel=READING)
    ] = None,
    model: Annotated[
        Path | None, Option(help="The model that made the first vectors: tells what shaped them, and likely links.")
    ] = None,
    layout: Annotated[
        str | None,
        Option(
            metavar="<pca|tsne|FILE>",
            help="Where nodes stand: pca (at once), tsne (minutes for many nodes, then kept beside the vectors), or a "
            "file with two numbers for each node. By default pca at once and tsne as soon as it is ready.",
        ),
    ] = None,
    html: Annotated[
        Path | None, Option(help="Write the page to this file instead, to open or send without a server.")
    ] = None,
    seed: Annotated[int, Option(help="Of the map: the same seed, the same map.", min=0)] = 0,
    port: Annotated[int, Option(help="Port to listen on; a free one by default.", min=0, max=65535)] = 0,
    open_page: Annotated[bool, Option("--open/--no-open", help="Open the page in a browser.")] = True,
) -> None:
    """Look at vectors in a browser: every node on a map, with its neighbours and attributes.

    The page is served on this machine alone, by this command, until Ctrl-C; nothing is sent anywhere. Nodes are
    matched by id. Without --graph there are vectors and ids to look at; with it also links, attributes and labels.
    A model has its graph, and also tells what shaped a vector and which links are likely.

    \b
    brane explore stdlib
    brane explore vectors.npz --graph citeseer
    brane explore model.brane
    brane explore old.npz new.npz --graph graph.npz
    brane explore vectors.npz --graph edges.csv --nodes people.csv --label team
    brane explore vectors.npz --graph citeseer --html map.html
    """
    from neural_brane.explore.opening import open_view

    files = {"attributes": attributes, "labels": labels, "nodes": nodes, "id": id_column, "label": label_column}
    given = {name: value for name, value in files.items() if value is not None}
    if given and graph is None:
        raise ParameterError(f"--{next(iter(given))} goes with a graph; give --graph FILE too")
    if html is not None:
        check_html(html, [*vectors, graph or ""])
    view = open_view([find_source(one) for one in vectors], read_source(graph, given), model=model)
    if html is not None:
        write_page(view, html, layout, seed)
    else:
        serve(view, layout, seed, port, open_page)


def find_source(given: str) -> Path | Embedder:
    """A file, or vectors that are learned now from a dataset of that name."""
    from neural_brane.cli.embed import train
    from neural_brane.files import datasets
    from neural_brane.files.datasets.registry import registry
    from neural_brane.methods import find_method

    if given not in registry() and not given.startswith(datasets.SYNTHETIC):
        return Path(given)
    model = find_method("neural-brane")(seed=0)
    train(model, datasets.load(given))
    return model


def check_html(html: Path, inputs: list[str]) -> None:
    """Refuse a page that cannot be written, or would overwrite what is read."""
    from neural_brane.files.storage import check_distinct, check_target

    check_target(html, (".html", ".htm"), ".html", ParameterError)
    check_distinct({"--html": html}, {name: name for name in inputs if name})


def read_source(graph: str | None, options: dict[str, Any]) -> AttributedGraph | None:
    """The graph that was named, with the files that go with it; None where none was."""
    from neural_brane.files import datasets

    return None if graph is None else datasets.read(graph, **options)


def write_page(view: View, html: Path, layout: str | None, seed: int) -> None:
    """Write the page as one file."""
    from neural_brane.cli.embed import size
    from neural_brane.explore.static import check_size, write_static

    check_size(view)
    make_layout(view, layout or default_layout(view), seed)
    left_out = write_static(view, html)
    echo(f"wrote a map of {len(view.nodes):,} nodes to {html} ({size(html)}); open it in a browser")
    echo(f"left out of the file: {left_out}")


def default_layout(view: View) -> str:
    """t-SNE where it can be had and takes minutes at most, else the principal axes."""
    from importlib.util import find_spec

    from neural_brane.explore.opening import MOST_TSNE

    return "tsne" if find_spec("openTSNE") and len(view.nodes) <= MOST_TSNE else "pca"


def make_layout(view: View, layout: str, seed: int) -> None:
    """Make a map of every run, and show how far it is."""
    from neural_brane.cli.terminal import counting
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
            f"port {port} cannot be had ({failure.strerror}); choose another, or leave it out"
        ) from None
    echo(f"{view.title}: {len(view.nodes):,} nodes at {server.address}")
    echo("Ctrl-C ends it")
    if making is not None:
        making.start()
    if open_page:
        webbrowser.open(server.address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        echo("the page is closed")
    finally:
        if making is not None:
            making.stop()
        server.server_close()
