"""Open vectors, a graph and maps; match their nodes and check them before the page opens."""

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

MOST_TSNE = 200_000  # most nodes for t-SNE: more take hours
MODEL = ".brane"  # the suffix of a saved model

Source: TypeAlias = "Path | Embedder"  # a file of vectors or of a model, or a fitted model


def open_view(sources: Sequence[Source], graph: AttributedGraph | None = None, *, model: Path | None = None) -> View:
    """Return a view of vectors of the same nodes, without a map; `model` explains the first, and gives the graph."""
    ids, runs = open_runs(sources)
    if model is not None:
        runs[0].model = open_model(model)
        if (missing := ids[locate(runs[0].model.embedding_.ids, ids) < 0]).size:
            found = f"{model}: this model lacks {missing.size:,} of the {len(ids):,} nodes,"
            raise EmbeddingError(f"{found} such as {missing[0].item()!r}; give the model that made the vectors")
    models = [run.model for run in runs if run.model is not None]
    if graph is None and models:
        graph = models[0].graph_
    return View(Nodes(ids, graph), runs, title=graph.name if graph is not None else runs[0].name)


def open_runs(sources: Sequence[Source]) -> tuple[np.ndarray, list[Run]]:
    """Return the ids of the first vectors, and a run for each source with its rows in the order of these ids."""
    if not sources:
        raise ParameterError("no vectors; give a file, as in 'brane explore vectors.npz'")
    runs: list[Run] = []
    names = [one.stem if isinstance(one, Path) else one.title for one in sources]
    if len(set(names)) < len(names):
        names = [str(one) for one in sources]  # equal names: use the whole paths
    for source, name in zip(sources, names, strict=True):
        path = source if isinstance(source, Path) else None
        model = source if not isinstance(source, Path) else open_model(source) if source.suffix == MODEL else None
        embedding = model.embedding_ if model is not None else open_vectors(Path(str(path)))
        if not runs:
            ids = embedding.ids
        vectors = embedding.vectors
        if not np.array_equal(ids, embedding.ids):
            vectors = vectors[_matched(str(sources[0]), str(source), ids, embedding.ids)]
        runs.append(Run(name, vectors, path=path, model=model))
    return ids, runs


def open_model(path: Path) -> Embedder:
    """Return the fitted method of a file; the import is local because loading the methods takes time and memory."""
    from neural_brane.files.models import load_model

    return load_model(path)


def open_vectors(path: Path) -> Embedding:
    """Return the vectors of a file; those of an uncompressed .npz file stay on disk."""
    try:
        embedding = Embedding.load(path, mmap=path.suffix == ".npz")
    except EmbeddingError:  # a compressed file; any other fault raises the error again
        embedding = Embedding.load(path)
    if not len(embedding) or not embedding.dim:
        raise EmbeddingError(f"{path}: this file has no vectors; give a file with at least one")
    for _ in finite_blocks(path, embedding.vectors):  # raises an error at NaN or infinity
        pass
    return embedding


def _matched(first: str, path: str, ids: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the row in one file of each id of another; refuse files of different nodes."""
    rows = locate(others, ids)
    missing, extra = ids[rows < 0], len(others) - int((rows >= 0).sum())
    if len(missing) or extra:
        such = f", such as {missing[0].item()!r}" if len(missing) else ""
        raise EmbeddingError(
            f"{path} and {first} have different nodes: {len(missing):,} nodes of {first} are missing in {path}{such}, "
            f"and {extra:,} nodes are only in {path}; give vectors of the same graph"
        )
    return rows


def lay_out(view: View, layout: str, *, seed: int = 0, progress: Reporter | None = None) -> None:
    """Add a map to every run: "pca", "tsne", or one map for all runs from a file with two numbers per node."""
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
    """Raise an error if the package for t-SNE is missing, or t-SNE would take hours."""
    require_tsne()
    if nodes > MOST_TSNE:
        advice = f"the limit is {MOST_TSNE:,}. Give --layout pca, or --layout FILE with a map of another program"
        raise ParameterError(f"t-SNE of {nodes:,} nodes would take hours; {advice}")


def kept_tsne(run: Run, *, seed: int = 0, progress: Reporter | None = None) -> Any:
    """Return the t-SNE of a run from the file beside its vectors; if there is none, compute it and write the file."""
    file = KeptLayout(run.path, run.vectors, seed) if run.path is not None else None
    points = file.read() if file is not None else None
    if points is None:
        points = tsne(run.vectors, seed=seed, progress=progress)
        if file is not None:
            file.write(points)
    return points


class Making:
    """Compute t-SNE of all runs in a thread while the page shows the quick map; `report` receives the progress too."""

    def __init__(self, view: View, *, seed: int = 0, report: Reporter | None = None):
        self.view, self.seed, self.report = view, seed, report
        self._state: dict[str, Any] | None = {"layout": "tsne", "words": "starting", "share": 0.0}
        self._stopped = threading.Event()
        self.thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self.thread.start()

    def stop(self) -> None:
        """End the thread at its next progress report."""
        self._stopped.set()

    def state(self) -> dict[str, Any] | None:
        """Return the name and the progress of the map, or why it failed; None if it is finished."""
        return self._state

    def _reporter(self, run: Run) -> Callable[[Progress], None]:
        def report(progress: Progress) -> None:
            if self._stopped.is_set():
                raise StopMakingError
            words = f"{run.name}: {progress.done:,} of {progress.total:,} {progress.unit}"
            self._state = {"layout": "tsne", "words": words, "share": progress.done / max(progress.total, 1)}
            if self.report is not None:
                self.report(progress)

        return report

    def _work(self) -> None:
        try:
            layouts = [kept_tsne(run, seed=self.seed, progress=self._reporter(run)) for run in self.view.runs]
            for run, points in zip(self.view.runs, layouts, strict=True):
                run.add_layout("tsne", points)
            self._state = None
        except StopMakingError:
            self._state = None
        except Exception as failure:  # the page keeps the quick map and shows the reason
            self._state = {"layout": "tsne", "failed": f"t-SNE failed, so the page keeps the quick map: {failure}"}


class StopMakingError(Exception):
    """The command ended while a map was being computed."""
