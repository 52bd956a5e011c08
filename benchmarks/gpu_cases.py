"""Make the cases that `gpu.py` trains: a graph in the GPU's memory and a model of a recipe's size."""

from typing import NamedTuple, Self

import gpu_rivals
import numpy as np
import torch
from alone import ALONE

from neural_brane import AttributedGraph, NeuralBrane
from neural_brane.kernels import gpu
from neural_brane.kernels.model import Bags, Model, Settings, padded
from neural_brane.methods.neural_brane.parts import kernel_settings
from neural_brane.sampling.triplets_gpu import TripletSampler


class Case(NamedTuple):
    """A graph in the GPU's memory, and an untrained model for it."""

    bags: list[Bags]
    sampler: TripletSampler
    model: Model
    settings: dict  # the recipe's settings

    @classmethod
    def of(cls, graph: AttributedGraph, recipe: str = "default") -> Self:
        """Place a graph in the GPU's memory and make a model for it."""
        bags = [_place(graph.attributes), _place(graph.adjacency)]
        return cls.made(bags, TripletSampler(graph.adjacency, placed=bags[1]), graph.attributes.shape[1], recipe)

    @classmethod
    def made(cls, bags: list[Bags], sampler: TripletSampler, attributes: int, recipe: str = "default") -> Self:
        """Make a model for a graph whose bags are already in the GPU's memory."""
        settings = NeuralBrane(recipe=recipe, **ALONE).parameters_in_force()
        d1, dim, hidden = (settings[name] for name in ("attribute_dim", "dim", "hidden"))
        tables = [_table(attributes, d1, settings), _table(len(bags[1].indptr) - 1, dim - d1, settings)]
        weight = settings["weight_std"] * torch.randn((hidden, dim), device="cuda")
        return cls(bags, sampler, Model(*tables, weight, torch.zeros(hidden, device="cuda")), settings)

    def kernel_settings(self, batch: int) -> Settings:
        """Return the recipe's settings with another batch size."""
        return kernel_settings(self.settings | {"batch_size": batch})

    def floor_bytes(self, rows: list[float]) -> float:
        """Return the least bytes that pooling reads: `rows` rows of each table, and their indices."""
        d1 = self.settings["attribute_dim"]
        return sum(4 * count * (width + 1) for count, width in zip(rows, (d1, self.settings["dim"] - d1), strict=True))

    def torch_speed(self, batch: int, steps: int) -> float:
        """Return the triplets per second of idiomatic PyTorch."""
        triplets = self.sampler.draw(0, steps * batch).view(steps, batch, 3)
        return batch / gpu_rivals.step_seconds(self.model, self.bags, triplets, self.kernel_settings(batch))


def _table(rows: int, width: int, settings: dict) -> torch.Tensor:
    table = torch.zeros((rows, padded(width)), device="cuda")
    for part in table.split(2**20):
        part[:, :width].normal_(0, settings["table_std"])
    return table


def _place(matrix) -> Bags:
    """Copy the structure of a sparse matrix to the GPU's memory."""
    return gpu.place(Bags(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False)))
