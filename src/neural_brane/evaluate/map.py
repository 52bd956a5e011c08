"""A map of vectors in the plane, and a picture of it."""

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
    """Project the directions of vectors to the plane: (nodes, dim) to (nodes, 2) float32.

    how: "tsne", which starts from the two principal axes and takes seconds for a thousand nodes, minutes for ten
    thousand; or "pca", the two principal axes alone, at once. The same seed gives the same map, on any number of
    cores.

    >>> map_2d(np.eye(6), how="pca").shape
    (6, 2)
    """
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    if how not in ("tsne", "pca"):
        raise ParameterError(f"how={how!r} makes no sense; give 'tsne' or 'pca'")
    table = np.asarray(vectors)
    if table.ndim != 2 or len(table) < 5 or table.shape[1] < 2:
        raise EmbeddingError(f"vectors {table.shape}: a map needs five nodes and two dimensions or more")
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


# Okabe and Ito's colours, which people of any colour vision can tell apart, without the yellow: too pale on white.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
MARKERS = ("o", "^", "s", "D", "v")  # a class after the seventh reuses a colour in another shape
NAMED = 20  # classes with an entry of their own in the legend; the others are grey
MOST_NODES = 5000  # of a larger embedding a sample is drawn: the projection takes minutes and the dots overlap


def plot(
    embedding: Embedding,
    path: str | Path,
    *,
    labels: np.ndarray | None = None,
    names: Sequence[Any] = (),
    title: str = "",
    seed: int = 0,
) -> None:
    """Draw an embedding to `path` as a PNG, coloured by class.

    `labels` stand in the order of the vectors; nodes labelled "" are grey. `names` are ids to write
    beside their dots. Above 5,000 nodes, a random 5,000 (and the named ones) are drawn.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patheffects import withStroke

    check_target(path, (".png",), ".png, as pictures are written", EmbeddingError)
    classes = np.full(len(embedding), "") if labels is None else np.asarray(labels).astype(str)
    if classes.shape != (len(embedding),):
        raise EmbeddingError(f"{len(embedding)} vectors and labels of shape {classes.shape}: give one label per vector")
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
    """The rows to draw, sorted: all, or a random `most` of them and the named ones."""
    if nodes <= most:
        return np.arange(nodes)
    return np.union1d(np.random.default_rng(seed).choice(nodes, most, replace=False), named)


def draw_dots(axes: Axes, points: np.ndarray, classes: np.ndarray) -> None:
    """Draw the points and their legend; the largest classes come first, so that small ones lie on top."""
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
    if len(found):  # with signs larger than the dots
        signs = [Line2D([], [], linestyle="", color=c, marker=m, label=text) for text, _, c, m in groups]
        axes.legend(handles=signs, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
