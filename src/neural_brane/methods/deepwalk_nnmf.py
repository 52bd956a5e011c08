"""DeepWalk beside NNMF: links learned by walks, and links and attributes by parts."""

from typing import Any

import numpy as np

from neural_brane.graph import AttributedGraph
from neural_brane.graph.memory import Sizes
from neural_brane.methods.base import Vectors, require
from neural_brane.methods.deepwalk import DeepWalk
from neural_brane.methods.nnmf import NNMF, require_no_negatives
from neural_brane.methods.parameters import whole
from neural_brane.methods.training import SINGLE, Moments
from neural_brane.progress import Progress, Reporter


class DeepWalkNNMF(DeepWalk):
    """DeepWalk (Perozzi, Al-Rfou, Skiena; 2014) beside NNMF (Lee, Seung; 2001), concatenated as they are.

    Each has half the width; an odd dim gives NNMF one number more.
    """

    title = "deepwalk+nnmf"
    uses = ("links", "attributes")
    growth = "time: that of deepwalk and that of nnmf; memory: edges + attribute entries + nodes × dim"
    paper = "Perozzi, Al-Rfou, Skiena: DeepWalk, 2014; Lee, Seung: Non-negative matrix factorization, 2001"
    shortlisted = False
    small = DeepWalk.small | {"nnmf_epochs": 2}
    trial = {"walks_per_node": 1, "nnmf_epochs": 3}

    prolongs = ("nnmf_epochs",)

    nnmf_epochs: int = whole("How many times NNMF's factors are updated.", default=200)

    def parameters_in_force(self) -> dict[str, Any]:
        values = super().parameters_in_force()
        require(values["dim"] >= 2, "dim", values["dim"], "2 or more, a number for each of the two methods")
        return values

    def memory(self, sizes: Sizes) -> Moments:
        walks, nnmf = self._methods()
        vectors = SINGLE * sizes.nodes * walks.dim
        second = {name: {**one, "vectors": one.get("vectors", 0) + vectors} for name, one in nnmf.memory(sizes).items()}
        return {f"deepwalk: {name}": one for name, one in walks.memory(sizes).items()} | {
            f"nnmf: {name}": one for name, one in second.items()
        }

    def work(self, sizes: Sizes) -> float:
        """Add the work of both methods."""
        return sum(method.work(sizes) for method in self._methods())

    def _methods(self) -> tuple[DeepWalk, NNMF]:
        """The two, each with half the width."""
        half = self.dim // 2
        settings = self.get_params(deep=False) | {"dim": half, "progress": self._part(1)}
        settings.pop("nnmf_epochs")
        nnmf = NNMF(
            dim=self.dim - half, epochs=self.nnmf_epochs, seed=self.seed, threads=self.threads, progress=self._part(2)
        )
        return DeepWalk(**settings), nnmf

    def _learn(self, graph: AttributedGraph, seed: int) -> Vectors:
        require_no_negatives(graph, self.title)  # before the walks, which take long
        halves = []
        for part in self._methods():
            part._stages = self._stages.within(part.title)
            halves.append(part._learn(graph, seed).vectors)
        return Vectors(np.hstack(halves))

    def _part(self, part: int) -> Reporter | None:
        """Progress of one of the two methods as that of the whole, in percent."""
        if self.progress is None:
            return None
        report = self.progress

        def pass_on(own: Progress) -> None:
            share = 50 / own.total
            done = 50 * (part - 1) + int(share * own.done)
            report(Progress(part, 2, done, 100, own.loss, share * own.rate, "percent"))

        return pass_on
