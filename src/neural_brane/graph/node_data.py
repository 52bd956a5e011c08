"""What nodes of other libraries carry under keys, as a table of nodes: typed and encoded as its columns are."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from neural_brane.errors import GraphError
from neural_brane.graph.columns import Encoder, infer_columns
from neural_brane.graph.frames import series_of
from neural_brane.graph.missing import is_missing

MANY_KEYS = 5


class NodeData(NamedTuple):
    """A dict of data for every node, and what the graph is called in messages."""

    nodes: list[dict[str, Any]]
    where: str

    def column(self, key: str) -> list[Any]:
        """What the nodes have under a key, None where one has nothing."""
        return [node.get(key) for node in self.nodes]

    def keys(self) -> list[str]:
        """The keys that any node has, in the order they appear."""
        return list(dict.fromkeys(key for node in self.nodes for key in node))

    def tell_unused(self, used: set[str]) -> None:
        """Warn of data under keys that nobody has asked for."""
        others = [repr(key) for key in self.keys() if key not in used]
        if others:
            more = ", …" if len(others) > MANY_KEYS else ""
            warnings.warn(
                f"nodes of {self.where} have data under {', '.join(others[:MANY_KEYS])}{more}, which is not used; name "
                "it to use it, as in attributes=['age', 'country'] or label='club'",
                stacklevel=4,
            )


def attributes_of(data: NodeData, keys: Sequence[str]) -> tuple[sparse.csr_array, np.ndarray, Encoder]:
    """The attributes (nodes, attributes) of what nodes have under some keys, their names, and their encoder."""
    import polars as pl

    known = data.keys()
    for key in keys:
        if key not in known:
            raise GraphError(f"no node of {data.where} has {key!r}; nodes have {', '.join(map(repr, known)) or 'none'}")
    return encode_table(pl.DataFrame([series_of(key, _known(data.column(key))) for key in keys]))


def encode_table(table: Any) -> tuple[sparse.csr_array, np.ndarray, Encoder]:
    """The attributes of a polars data frame with a row for every node, their names, and their encoder."""
    encoder = Encoder.fit(table, infer_columns(table))
    return (*encoder.encode(table), encoder)


def _known(values: list[Any]) -> list[Any]:
    """The same values, None for all that stands for nothing, in Python's own types."""
    return [None if is_missing(value) else value.item() if isinstance(value, np.generic) else value for value in values]
