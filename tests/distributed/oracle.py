"""A simple second engine for ranks in double precision; test_oracle.py compares the real engine with it.

Each rank owns some rows of every table. It requests the distinct rows that its triplets pool, computes the gradient of
`kernels.reference` with them, and sends the changes to the owners.
"""

import sys
from datetime import timedelta
from pathlib import Path

import numpy as np
import torch
from engine_cases import CASES, LONG, LONG_STEPS, SEED, STEPS, graph, settings_of
from ranks import PATIENCE
from torch import distributed

from neural_brane.distributed.exchange import node_range
from neural_brane.kernels import reference
from neural_brane.kernels.model import Bags, Model, bags_of
from neural_brane.methods.neural_brane.parts import kernel_settings
from neural_brane.methods.neural_brane.training import initial_model
from neural_brane.sampling.triplets import TripletSampler

RANKS = 2
SHORT = [name for name in CASES if name != "large"]  # the reference kernel is slow


def send(values, give, take):
    """Send the next `give[r]` rows to rank r; return the received rows in the order of the ranks."""
    got = np.empty((sum(take), *values.shape[1:]), values.dtype)
    distributed.all_to_all_single(torch.from_numpy(got), torch.from_numpy(values), list(take), list(give))
    return got


class Shard:
    """The rows of a table that a rank owns."""

    def __init__(self, table, rank):
        own = node_range(len(table), rank, RANKS)
        self.rows = table[own.start : own.stop].astype(np.float64)
        self.first, self._starts = own.start, [node_range(len(table), other, RANKS).start for other in range(RANKS)]

    def fetch(self, ids):
        """Return rows by their distinct, increasing numbers."""
        cuts = np.append(np.searchsorted(ids, self._starts), len(ids))
        self._give = np.diff(cuts).tolist()
        self._take = send(np.diff(cuts), [1] * RANKS, [1] * RANKS).tolist()
        self._requested = send(ids, self._give, self._take) - self.first
        return send(self.rows[self._requested], self._take, self._give)

    def add(self, differences):
        """Add to the last fetched rows, at their owners."""
        np.add.at(self.rows, self._requested, send(differences, self._give, self._take))


class Oracle:
    """A model in double precision with tables divided among the ranks; all ranks call `step` together."""

    def __init__(self, model, bags, settings, rank):
        self.tables = [Shard(table, rank) for table in (model.attribute_table, model.neighbour_table)]
        self.weight, self.bias = model.weight.astype(np.float64), model.bias.astype(np.float64)
        self.bags, self.settings = bags, settings

    def step(self, triplets):
        """Take a step with the triplets of all ranks; return the sum of −ln σ over all of them."""
        settings = self.settings
        nodes, places = np.unique(triplets, return_inverse=True)
        ids, bags = zip(*(distinct_rows(bag, nodes) for bag in self.bags), strict=True)
        rows = [table.fetch(own) for table, own in zip(self.tables, ids, strict=True)]
        without_l2 = settings._replace(parameter_l2=0.0)  # owners apply L2 to all their rows
        small = Model(*rows, self.weight, self.bias)
        slopes, loss = reference.gradients(small, *bags, places.reshape(triplets.shape), without_l2)
        for table, slope in zip(self.tables, slopes[:2], strict=True):
            table.rows *= 1 - 2 * settings.table_rate * settings.parameter_l2
            table.add(-settings.table_rate * slope)
        sums = np.concatenate([slopes.weight.ravel(), slopes.bias, [loss * len(triplets)]])
        distributed.all_reduce(torch.from_numpy(sums))
        slope = sums[: self.weight.size].reshape(self.weight.shape) + 2 * settings.parameter_l2 * self.weight
        self.weight -= settings.learning_rate * slope
        if settings.train_bias:
            slope = sums[self.weight.size : -1] + 2 * settings.parameter_l2 * self.bias
            self.bias -= settings.learning_rate * slope
        return sums[-1]


def distinct_rows(bags, nodes):
    """Return the distinct rows in the bags of nodes, and the bags renumbered by these rows."""
    pieces = [bags.indices[bags.indptr[node] : bags.indptr[node + 1]] for node in nodes]
    ids, places = np.unique(np.concatenate(pieces), return_inverse=True)
    indptr = np.cumsum([0, *map(len, pieces)])
    return ids.astype(np.int64), Bags(indptr, places)


def train(name, steps, rank):
    """Return this rank's part of the model of a case after so many steps."""
    settings, case = settings_of(name), graph()
    batch = settings["batch_size"]
    options = {option: settings[option] for option in ("negative_power", "allow_self_negative")}
    triplets = TripletSampler(case.adjacency, seed=SEED, **options).draw(0, steps * batch).reshape(steps, batch, 3)
    bags = bags_of(case.attributes), bags_of(case.adjacency)
    oracle = Oracle(initial_model(case, settings, SEED), bags, kernel_settings(settings), rank)
    losses = [oracle.step(np.array_split(of_step, RANKS)[rank]) / batch for of_step in triplets]
    found = dict(zip(("attribute_table", "neighbour_table"), (table.rows for table in oracle.tables), strict=True))
    found |= {"weight": oracle.weight, "bias": oracle.bias, "losses": np.array(losses)}
    return {f"{name}/{field}": array for field, array in found.items()}


def main(store, output, rank):
    torch.set_num_threads(1)
    limit = timedelta(seconds=PATIENCE)
    distributed.init_process_group(
        "gloo", store=distributed.FileStore(store, RANKS), rank=rank, world_size=RANKS, timeout=limit
    )
    found = {}
    for name in (*SHORT, *LONG):
        found |= train(name, LONG_STEPS if name in LONG else STEPS, rank)
    np.savez(Path(output) / f"{rank}.npz", **found)
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
