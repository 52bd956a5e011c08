"""How long to train, and in which batches, by the size of the graph."""

from typing import Any

LEAST_TRIPLETS, TRIPLETS_PER_NODE = 2_000_000, 300
EPOCHS = 20  # the most; training ends earlier once the loss is flat
BATCH = (4_000, 65_536)  # the smallest and the largest, but for tiny graphs
NODES_PER_TRIPLET = 6  # of a batch, on large graphs: few triplets of a batch then share a node
TRIPLETS_OF_A_NODE = 6  # on tiny graphs: the step of a row is the sum of its triplets', and must not grow too long
SMALLEST_BATCH = 100


def schedule(nodes: int, given: dict[str, Any]) -> dict[str, int]:
    """The batch size, epochs and batches in an epoch that suit a graph, beside those that are `given`.

    A batch given smaller makes epochs of more batches: the number of triplets stays.

    >>> schedule(3_312, {})
    {'batch_size': 4000, 'epochs': 20, 'batches_per_epoch': 25}
    >>> schedule(1_000_000, {})
    {'batch_size': 65536, 'epochs': 20, 'batches_per_epoch': 229}
    """
    fit = min(max(nodes // NODES_PER_TRIPLET, BATCH[0]), BATCH[1])
    if given.get("pooling") == "sum":  # every row of a bag then takes the steps of all its nodes' triplets
        fit = SMALLEST_BATCH
    batch = given.get("batch_size") or max(min(fit, TRIPLETS_OF_A_NODE * nodes), SMALLEST_BATCH)
    triplets = max(LEAST_TRIPLETS, TRIPLETS_PER_NODE * nodes)
    found = {"batch_size": batch, "epochs": EPOCHS, "batches_per_epoch": -(-triplets // (EPOCHS * batch))}
    return found | {name: value for name, value in given.items() if name in found}
