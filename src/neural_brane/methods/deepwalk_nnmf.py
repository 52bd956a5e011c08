"""DeepWalk and NNMF side by side: walks learn the links, NNMF learns links and attributes."""

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
    """Concatenate the vectors of DeepWalk and of NNMF.

    DeepWalk (Perozzi, Al-Rfou, Skiena; 2014) learns the links, NNMF (Lee, Seung; 2001) the links and attributes. Each
    gives half of the columns, unscaled; if dim is odd, NNMF gives one more. It is good on social networks.
    """

    title = "deepwalk+nnmf"
    uses = ("links", "attributes")
    growth = "time: that of deepwalk and that of nnmf; memory: edges + attribute entries + nodes × dim"
    paper = "Perozzi, Al-Rfou, Skiena: DeepWalk, 2014; Lee, Seung: Non-negative matrix factorization, 2001"
    shortlisted = False
    small = DeepWalk.small | {"nnmf_epochs": 2}
    trial = {"walks_per_node": 1, "nnmf_epochs": 3}
    prolongs = ("nnmf_epochs",)

    nnmf_epochs: int = whole("Number of updates of NNMF's factors.", default=200)

    def parameters_in_force(self) -> dict[str, Any]:
        values = super().parameters_in_force()
        require(values["dim"] >= 2, "dim", values["dim"], "2 or more, so that each of the two methods has a column")
        return values

    def memory(self, sizes: Sizes) -> Moments:
        walks, nnmf = self._methods()
        vectors = SINGLE * sizes.nodes * walks.dim
        second = {name: {**one, "vectors": one.get("vectors", 0) + vectors} for name, one in nnmf.memory(sizes).items()}
        return {f"deepwalk: {name}": one for name, one in walks.memory(sizes).items()} | {
            f"nnmf: {name}": one for name, one in second.items()
        }

    def work(self, sizes: Sizes) -> float:
        """Return the work of both methods together."""
        return sum(method.work(sizes) for method in self._methods())

    def _methods(self) -> tuple[DeepWalk, NNMF]:
        """Return the two methods, each with half the width."""
        half = self.dim // 2
        settings = self.get_params(deep=False) | {"dim": half, "progress": self._reporter(1)}
        settings.pop("nnmf_epochs")
        shared: dict[str, Any] = {"seed": self.seed, "threads": self.threads, "progress": self._reporter(2)}
        return DeepWalk(**settings), NNMF(dim=self.dim - half, epochs=self.nnmf_epochs, **shared)

    def _learn(self, graph: AttributedGraph, seed: int) -> Vectors:
        require_no_negatives(graph, self.title)  # before the walks, which take a long time
        halves = []
        for method in self._methods():
            method._stages = self._stages.within(method.title)
            halves.append(method._learn(graph, seed).vectors)
        return Vectors(np.hstack(halves))

    def _reporter(self, number: int) -> Reporter | None:
        """Return a reporter that turns the progress of method 1 or 2 into percent of the whole training."""
        if self.progress is None:
            return None
        report = self.progress

        def pass_on(own: Progress) -> None:
            share = 50 / own.total
            done = 50 * (number - 1) + int(share * own.done)
            report(Progress(number, 2, done, 100, own.loss, share * own.rate, "percent"))

        return pass_on
