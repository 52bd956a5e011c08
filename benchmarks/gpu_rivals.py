"""Train the model in idiomatic PyTorch, and generate graphs on the GPU, for `gpu.py`."""

import numpy as np
import torch
import triton
from scipy import sparse
from torch import nn

from neural_brane.kernels.model import Bags, Model, Settings


def triton_version() -> str:
    """Return Triton's version."""
    return str(triton.__version__)


class PlainModel(nn.Module):
    """Neural-Brane as a PyTorch user would write it: EmbeddingBag with max, a linear layer, autograd."""

    def __init__(self, model: Model, bags: list[Bags], settings: Settings):
        super().__init__()
        d1, dim = settings.attribute_dim, model.weight.shape[1]
        tables = model.attribute_table[:, :d1], model.neighbour_table[:, : dim - d1]
        self.tables = nn.ModuleList(
            nn.EmbeddingBag.from_pretrained(table.clone(), freeze=False, mode="max") for table in tables
        )
        self.layer = nn.Linear(dim, len(model.weight), bias=False, device="cuda")
        self.bags, self.settings = bags, settings

    def forward(self, triplets: torch.Tensor) -> torch.Tensor:
        """Return the loss of a batch (k, 3)."""
        nodes = triplets.reshape(-1)
        parts = []
        for table, bags in zip(self.tables, self.bags, strict=True):
            starts = bags.indptr[nodes]
            sizes = bags.indptr[nodes + 1] - starts
            offsets = sizes.cumsum(0) - sizes
            places = torch.arange(int(sizes.sum()), device="cuda") + torch.repeat_interleave(starts - offsets, sizes)
            parts.append(table(bags.indices[places].long(), offsets))
        h = torch.relu(self.layer(torch.cat(parts, 1)))
        u, i, j = h.view(-1, 3, h.shape[1]).unbind(1)
        loss = -nn.functional.logsigmoid((u * (i - j)).sum(1)).mean()
        return loss + self.settings.hidden_l2 * h.square().sum()


def step_seconds(model: Model, bags: list[Bags], triplets: torch.Tensor, settings: Settings) -> float:
    """Return the seconds per step of SGD over triplets (steps, batch, 3), without the first two steps."""
    plain = PlainModel(model, bags, settings)
    rates = {"lr": settings.learning_rate}, {"lr": settings.table_rate}
    parts = plain.layer.parameters(), plain.tables.parameters()
    optimizer = torch.optim.SGD([{"params": part, **rate} for part, rate in zip(parts, rates, strict=True)])
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for step, batch in enumerate(triplets.long()):
        if step == 2:
            begin.record()
        optimizer.zero_grad()
        plain(batch).backward()
        optimizer.step()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1000 / (len(triplets) - 2)


def block_model(
    nodes: int, attributes: int, *, degree: int, each: int, classes: int = 10, mixing: float = 0.2
) -> tuple[Bags, Bags, sparse.csr_array]:
    """Make a graph like those of `neural_brane.synthetic` on the GPU; return both kinds of bags and the adjacency."""
    random = torch.Generator("cuda").manual_seed(0)
    options = {"generator": random, "device": "cuda"}
    labels = torch.randint(classes, (nodes,), dtype=torch.int32, **options)
    columns = torch.empty((nodes, each), dtype=torch.int32, device="cuda")
    for k in range(each):
        start, stop = k * attributes // each, (k + 1) * attributes // each
        place = torch.rand(nodes, **options)
        place = torch.where(torch.rand(nodes, **options) >= mixing, (labels + place) / classes, place)
        columns[:, k] = (start + place * (stop - start)).int().clamp_(max=stop - 1)
    keys = _draw_edges(nodes, nodes * degree // 2, labels, classes, mixing, options)
    indptr = torch.zeros(nodes + 1, dtype=torch.int64, device="cuda")
    for part in keys.split(2**27):
        indptr[1:] += torch.bincount(part // nodes, minlength=nodes)
    indptr = indptr.cumsum(0)
    indices = torch.cat([(part % nodes).int() for part in keys.split(2**27)])
    del keys
    data = np.broadcast_to(np.float32(1), len(indices))  # all entries share one number
    adjacency = sparse.csr_array((nodes, nodes), dtype=np.float32)
    adjacency.data, adjacency.indices, adjacency.indptr = data, indices.cpu().numpy(), indptr.cpu().numpy()
    own = torch.arange(0, nodes * each + 1, each, device="cuda")
    return Bags(own, columns.view(-1)), Bags(indptr, indices), adjacency


def _draw_edges(nodes: int, edges: int, labels: torch.Tensor, classes: int, mixing: float, options: dict):
    """Return distinct edges in both directions, each as one number (from * nodes + to), sorted."""
    members = torch.argsort(labels, stable=True).int()
    sizes = torch.bincount(labels, minlength=classes)
    starts = sizes.cumsum(0) - sizes
    here = torch.randint(nodes, (edges,), dtype=torch.int32, **options)
    there = torch.randint(nodes, (edges,), dtype=torch.int32, **options)
    for part in torch.arange(edges, device="cuda").split(2**26):
        group = labels[here[part]].long()
        chosen = members[starts[group] + (torch.rand(len(part), **options) * sizes[group]).long()]
        there[part] = torch.where(torch.rand(len(part), **options) >= mixing, chosen, there[part])
    keys = torch.cat([here.long() * nodes + there, there.long() * nodes + here])[(here != there).repeat(2)]
    del here, there
    keys = torch.sort(keys).values
    return keys[torch.cat([keys.new_ones(1, dtype=torch.bool), keys[1:] != keys[:-1]])]
