"""Project vectors to the plane, and draw a picture of this map."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate.labelled import Vectors, check_finite
from neural_brane.files.storage import atomic, check_target
from neural_brane.kernels.threads import one_blas_thread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

How = Literal["tsne", "pca"]


def map_2d(vectors: Vectors, *, seed: int = 0, how: How = "tsne") -> np.ndarray:
    """Return points in the plane (nodes, 2) float32, projected from the directions of vectors (nodes, dim).

    `how` is "pca", the two principal axes, which take no time; or "tsne", which starts from these axes and takes
    seconds for a thousand nodes, minutes for ten thousand. The same seed gives the same map on any number of cores.

    >>> map_2d(np.eye(6), how="pca").shape
    (6, 2)
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if how not in ("tsne", "pca"):
        raise ParameterError(f"how={how!r} makes no sense; give 'tsne' or 'pca'")
    table = np.asarray(vectors)
    if table.ndim != 2 or len(table) < 5 or table.shape[1] < 2:
        raise EmbeddingError(f"vectors have shape {table.shape}; a map needs at least five nodes and two dimensions")
    table = table.astype(np.float64)
    check_finite(table)
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    directions = np.divide(table, lengths, out=np.zeros_like(table), where=lengths > 0)
    if not directions.std(axis=0).any():
        return np.zeros((len(table), 2), dtype=np.float32)  # all directions are the same
    with one_blas_thread():
        if how == "pca":
            points = PCA(2, svd_solver="covariance_eigh").fit_transform(directions)
        else:
            perplexity = min(30.0, (len(table) - 1) / 3)
            points = TSNE(perplexity=perplexity, init="pca", random_state=seed).fit_transform(directions)
    return np.asarray(points, dtype=np.float32)


# Okabe and Ito's colours can be distinguished by colour-blind people. Their yellow is left out: it is pale on white.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
MARKERS = ("o", "^", "s", "D", "v")  # every seven classes, the colours repeat with another shape
NAMED = 20  # classes with their own entry in the legend; the others are grey
MOST_NODES = 5000  # nodes to draw; with more, the projection takes minutes and the dots overlap


def plot(
    embedding: Embedding,
    path: str | Path,
    *,
    labels: np.ndarray | None = None,
    names: Sequence[Any] = (),
    title: str = "",
    seed: int = 0,
) -> None:
    """Draw a map of an embedding as a PNG file, coloured by class.

    Nodes with the label "" are grey. `names` are ids to write beside their dots. From a larger embedding, 5,000 random
    nodes and the named ones are drawn.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patheffects import withStroke

    check_target(path, (".png",), ".png, as pictures are written", EmbeddingError)
    classes = np.full(len(embedding), "") if labels is None else np.asarray(labels).astype(str)
    if classes.shape != (len(embedding),):
        raise EmbeddingError(f"labels have shape {classes.shape} for {len(embedding)} vectors; give one per vector")
    named = np.array([embedding.row(name) for name in names], dtype=np.int64)
    rows = sample_rows(len(embedding), named, seed)
    points = map_2d(embedding.vectors[rows], seed=seed)
    figure = Figure(figsize=(10, 7), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)  # draws without a display
    axes = figure.add_subplot()
    axes.set(xticks=[], yticks=[], title=title)
    axes.spines[:].set_visible(False)
    draw_dots(axes, points, classes[rows])
    halo = withStroke(linewidth=2.5, foreground="white")  # readable over other dots
    for row in named:
        point = points[np.searchsorted(rows, row)]
        axes.scatter(point[0], point[1], s=70, facecolors="none", edgecolors="black", linewidths=1.2)
        axes.annotate(
            str(embedding.ids[row]), tuple(point), (6, 5), textcoords="offset points", fontsize=9, weight="bold",
            path_effects=[halo],
        )  # fmt: skip
    with atomic(path) as temporary:
        figure.savefig(temporary, format="png", metadata={"Software": None})


def sample_rows(nodes: int, named: np.ndarray, seed: int, most: int = MOST_NODES) -> np.ndarray:
    """Return the rows to draw, sorted: all, or `most` random ones and the named ones."""
    if nodes <= most:
        return np.arange(nodes)
    return np.union1d(np.random.default_rng(seed).choice(nodes, most, replace=False), named)


def draw_dots(axes: Axes, points: np.ndarray, classes: np.ndarray) -> None:
    """Draw the points and a legend; the largest classes are drawn first, so that small ones are on top."""
    from matplotlib.lines import Line2D

    size = float(np.clip(12000 / len(points), 8, 36))
    found, counts = np.unique(classes[classes != ""], return_counts=True)
    ranked = found[np.argsort(-counts, kind="stable")]
    looks = [(colour, marker) for marker in MARKERS for colour in COLOURS]
    groups = [(str(name), classes == name, *look) for name, look in zip(ranked[:NAMED], looks, strict=False)]
    rest = ~np.isin(classes, ranked[:NAMED])
    if rest.any():
        text = f"{len(ranked) - NAMED} more classes" if len(ranked) > NAMED else "no label"
        groups.insert(0, (text, rest, "#BBBBBB", "o"))
    for _, here, colour, marker in groups:
        x, y = points[here].T
        axes.scatter(x, y, s=size, c=colour, marker=marker, alpha=0.85, linewidths=0)
    if len(found):  # the symbols of the legend are larger than the dots
        symbols = [Line2D([], [], linestyle="", color=c, marker=m, label=text) for text, _, c, m in groups]
        axes.legend(handles=symbols, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
