"""Open vectors, a graph and maps, matched and checked before anything is shown."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.explore.layout import KeptLayout, pca, read_layout, require_tsne, tsne
from neural_brane.explore.view import Nodes, Run, View
from neural_brane.files.vectors.parts import finite_blocks
from neural_brane.graph import AttributedGraph
from neural_brane.graph.ids import locate
from neural_brane.progress import Progress, Reporter

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder

MOST_TSNE = 200_000  # nodes up to which t-SNE takes minutes, not hours
MODEL = ".brane"  # the suffix of a file of a model

Source: TypeAlias = "Path | Embedder"  # a file of vectors or of a model, or a model that was just fitted


def open_view(sources: Sequence[Source], graph: AttributedGraph | None = None, *, model: Path | None = None) -> View:
    """A view of vectors of the same nodes, without a map so far; a model brings its own graph where none is given.

    model: the file of a model that made the first of the vectors, which can then say what shaped them.
    """
    ids, runs = open_runs(sources)
    if model is not None:
        runs[0].model = open_model(model)
        if (missing := ids[locate(runs[0].model.embedding_.ids, ids) < 0]).size:
            raise EmbeddingError(
                f"{model}: knows nothing of {missing.size:,} of the {len(ids):,} nodes, such as {missing[0].item()!r}; "
                "give the model that made the vectors"
            )
    models = [run.model for run in runs if run.model is not None]
    if graph is None and models:
        graph = models[0].graph_
    return View(Nodes(ids, graph), runs, title=graph.name if graph is not None else runs[0].name)


def open_runs(sources: Sequence[Source]) -> tuple[np.ndarray, list[Run]]:
    """Open vectors of the same nodes: the ids of the first, and the runs in its order."""
    if not sources:
        raise ParameterError("no file of vectors; give one, as in 'brane explore vectors.npz'")
    runs: list[Run] = []
    names = [one.stem if isinstance(one, Path) else one.title for one in sources]
    if len(set(names)) < len(names):
        names = [str(one) for one in sources]  # with their folders
    for source, name in zip(sources, names, strict=True):
        path = source if isinstance(source, Path) else None
        model = source if not isinstance(source, Path) else open_model(source) if source.suffix == MODEL else None
        found = model.embedding_ if model is not None else open_vectors(Path(str(path)))
        if not runs:
            ids = found.ids
        vectors = found.vectors
        if not np.array_equal(ids, found.ids):
            vectors = vectors[_matched(str(sources[0]), str(source), ids, found.ids)]
        runs.append(Run(name, vectors, layer=found.layer, path=path, model=model))
    return ids, runs


def open_model(path: Path) -> Embedder:
    """The fitted method of a file; methods are loaded only where there is one, because they take time and memory."""
    from neural_brane.files.models import load_model

    return load_model(path)


def open_vectors(path: Path) -> Embedding:
    """The vectors of a file; those of an .npz file stay in it where it allows that."""
    try:
        found = Embedding.load(path, mmap=path.suffix == ".npz")
    except EmbeddingError as refused:
        if "cannot be mapped" not in str(refused):
            raise
        found = Embedding.load(path)
    if not len(found) or not found.dim:
        raise EmbeddingError(f"{path}: holds no vectors; there is nothing to look at")
    for _ in finite_blocks(path, found.vectors):
        pass
    return found


def _matched(first: str, path: str, ids: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The rows of one file in the order of another; files of different nodes are refused."""
    rows = locate(others, ids)
    missing, extra = ids[rows < 0], len(others) - int((rows >= 0).sum())
    if len(missing) or extra:
        such = f", such as {missing[0].item()!r}" if len(missing) else ""
        raise EmbeddingError(
            f"{path} and {first} are not of the same nodes: {len(missing):,} of {first} are missing from {path}{such}, "
            f"and {extra:,} are only there; give vectors of one graph"
        )
    return rows


def lay_out(view: View, layout: str, *, seed: int = 0, progress: Reporter | None = None) -> None:
    """Add a map to every run: "pca", "tsne", or a file with two numbers for each node, which all runs share."""
    if layout not in ("pca", "tsne"):
        points = read_layout(Path(layout), view.nodes.ids)
        for run in view.runs:
            run.add_layout(Path(layout).stem, points)
        return
    if layout == "tsne":
        check_tsne(len(view.nodes))
    for run in view.runs:
        run.add_layout(layout, pca(run.vectors) if layout == "pca" else kept_tsne(run, seed=seed, progress=progress))


def check_tsne(nodes: int) -> None:
    """Refuse t-SNE before the work where its package is missing, or it would take hours."""
    require_tsne()
    if nodes > MOST_TSNE:
        raise ParameterError(
            f"t-SNE of {nodes:,} nodes would take hours; it is made for up to {MOST_TSNE:,}: "
            "take --layout pca, or --layout FILE with a map that another program made"
        )


def kept_tsne(run: Run, *, seed: int = 0, progress: Reporter | None = None) -> Any:
    """The t-SNE of a run: the one that is kept beside its file, or a new one, which is then kept."""
    kept = KeptLayout(run.path, run.vectors, seed) if run.path is not None else None
    points = kept.read() if kept is not None else None
    if points is None:
        points = tsne(run.vectors, seed=seed, progress=progress)
        if kept is not None:
            kept.write(points)
    return points


class Making:
    """t-SNE of all runs in a thread of its own, while the page shows the quick map.

    report: called with the progress too, besides the page.
    """

    def __init__(self, view: View, *, seed: int = 0, report: Reporter | None = None):
        self.view, self.seed, self.report = view, seed, report
        self._state: dict[str, Any] | None = {"layout": "tsne", "words": "beginning", "share": 0.0}
        self._stopped = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin."""
        self.thread.start()

    def stop(self) -> None:
        """Leave off at the next report."""
        self._stopped.set()

    def state(self) -> dict[str, Any] | None:
        """The map in the making and how far it is; None once it is done."""
        return self._state

    def _tell(self, run: Run) -> Callable[[Progress], None]:
        def tell(progress: Progress) -> None:
            if self._stopped.is_set():
                raise StopMakingError
            words = f"{run.name}: {progress.done:,} of {progress.total:,} {progress.unit}"
            self._state = {"layout": "tsne", "words": words, "share": progress.done / max(progress.total, 1)}
            if self.report is not None:
                self.report(progress)

        return tell

    def _work(self) -> None:
        try:
            found = [kept_tsne(run, seed=self.seed, progress=self._tell(run)) for run in self.view.runs]
            for run, points in zip(self.view.runs, found, strict=True):
                run.add_layout("tsne", points)
            self._state = None
        except StopMakingError:
            self._state = None
        except Exception as failure:  # the page goes on with the quick map, and says why
            self._state = {"layout": "tsne", "failed": f"the map by t-SNE could not be made: {failure}"}


class StopMakingError(Exception):
    """The command ends while a map is in the making."""
