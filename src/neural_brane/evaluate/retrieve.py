"""Search by cosine: how many of the nearest nodes have the same class, and how many of that class are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate.labelled import Result, Scored, Vectors, are_labelled, vectors_of
from neural_brane.graph.labels import MultiLabels
from neural_brane.progress import Meter, Reporter
from neural_brane.search.exact import Exact

LENGTHS = (1, 10, 100)  # of the lists, where none are given
QUERIES = 10_000  # nodes that are asked for, of more a sample
BLOCK_ENTRIES = 2**22  # pairs of a query and a node that shares a label, and entries of lists, at a time


@dataclass(frozen=True, slots=True)
class ListScore(Result):
    """Scores of lists of one length, on average over the queries."""

    k: int
    precision: float  # the share of a list that has the query's class
    recall: float  # the share of the other nodes of its class that the list holds
    average_precision: float  # precision at each hit, summed and divided by the most hits there could be: MAP@k
    chance_precision: float  # of nodes in random order
    chance_recall: float
    most_recall: float  # of perfect lists: a class larger than k does not fit in


@dataclass(frozen=True, slots=True)
class Retrieval(Scored):
    """The scores of a set of vectors, one per length of list, and what they were computed on."""

    scores: tuple[ListScore, ...]
    queries: int
    alone: int  # queries left out, because no other node has their class
    labelled: int
    unlabelled: int
    classes: tuple[str, ...]
    several: bool  # whether a hit is a node that shares one of several labels
    seed: int
    constants: ClassVar = {"similarity": "cosine"}


def retrieve(
    vectors: Vectors,
    labels: Any,
    *,
    k: int | Sequence[int] | None = None,
    queries: int | None = QUERIES,
    seed: int = 0,
    progress: Reporter | None = None,
) -> Retrieval:
    """Ask for the nodes nearest to a node by cosine, and count those that have its class.

    A hit is another node of the same class or, of nodes with several labels, one that shares a label. Every labelled
    node is asked for once, or a sample of them; the list is taken from all other labelled nodes. Chance is what lists
    in random order hold on average, which is known exactly.

    Parameters
    ----------
    vectors
        One row per node; their lengths do not matter.
    labels
        In the order of the vectors: a class per node, "" for none; or several labels, as `classify_several` takes them.
    k
        Lengths of the lists; by default 1, 10 and 100, as far as there are so many other nodes.
    queries
        The most nodes to ask for; of more, a random sample is drawn with `seed`. None asks for all.

    Examples
    --------
    >>> vectors = np.array([[1, 0], [9, 1], [0, 1], [1, 8]])
    >>> found = retrieve(vectors, ["net", "net", "text", "text"], k=1).at(1)
    >>> found.precision, round(found.chance_precision, 3)
    (1.0, 0.333)
    """
    tabular = sparse.issparse(labels) or (isinstance(labels, np.ndarray) and labels.ndim == 2)
    several = isinstance(labels, MultiLabels) or tabular
    several = several or not all(isinstance(one, str | int | np.integer) for one in labels)
    if several:
        given = MultiLabels.of(labels)
    else:
        classes = np.asarray(labels).astype(str)
        rows = np.flatnonzero(are_labelled(classes))
        given = MultiLabels.of_pairs(rows, classes[rows], len(classes))
    kept = given.counts > 0
    table, known = vectors_of(vectors, kept, "labels"), given[kept].without_unused()
    if len(known.names) < 2:
        raise EmbeddingError(f"{len(known.names)} class(es) among the labels; at least two are needed to tell apart")
    lengths = _lengths(k, len(table))
    if (queries is not None and queries < 1) or seed < 0:
        raise ParameterError(
            f"queries={queries}, seed={seed} make no sense; ask for at least one node, and give a seed of 0 or more"
        )
    asked = np.arange(len(table))
    if queries is not None and queries < len(table):
        asked = np.sort(np.random.default_rng(seed).choice(len(table), queries, replace=False))
    found, relevant = find_hits(table, known, asked, lengths[-1], Meter(progress, len(asked), "queries"))
    findable = relevant > 0
    if not findable.any():
        raise EmbeddingError("no node asked for shares its class with another: there is nothing to find")
    scores = tuple(_score(found[findable, :length], relevant[findable], len(table) - 1) for length in lengths)
    counts = (int(findable.sum()), int((~findable).sum()), len(table), int((~kept).sum()))
    return Retrieval(scores, *counts, known.names, several, seed)


def _lengths(k: int | Sequence[int] | None, nodes: int) -> list[int]:
    """The lengths of lists, from the shortest to the longest."""
    if k is None:
        return [length for length in LENGTHS if length < nodes]
    lengths = sorted({k} if isinstance(k, int) else set(k))
    if not lengths or lengths[0] < 1:
        raise ParameterError(f"k={k} makes no sense; give lengths of 1 or more, as in 10")
    if lengths[-1] >= nodes:
        raise ParameterError(f"k={lengths[-1]} of {nodes} labelled nodes: a list holds {nodes - 1} other nodes at most")
    return lengths


def find_hits(
    table: np.ndarray,
    known: MultiLabels,
    asked: np.ndarray,
    k: int,
    meter: Meter,
    *,
    block_entries: int = BLOCK_ENTRIES,
) -> tuple[np.ndarray, np.ndarray]:
    """Find which places of each list are hits, (queries, k) bool, and how many nodes could be hit, (queries,)."""
    members = known.members.astype(np.int32)
    search, single = Exact(table), bool((known.counts == 1).all())
    sizes = np.bincount(members.indices, minlength=len(known.names))
    found, relevant = np.zeros((len(asked), k), dtype=bool), np.empty(len(asked), dtype=np.int64)
    block = max(1, block_entries // max(len(table), k))
    for at in range(0, len(asked), block):
        rows = asked[at : at + block]
        nearest = search.nearest(table[rows], k, rows).rows
        own = members[rows]
        shared = own[np.repeat(np.arange(len(rows)), k)].multiply(members[nearest.ravel()])
        found[at : at + len(rows)] = np.asarray(shared.sum(axis=1)).reshape(len(rows), k) > 0
        # Nodes with several labels may share two with the query, so they are counted in the product.
        alike = sizes[own.indices] if single else np.diff((own @ members.T).tocsr().indptr)
        relevant[at : at + len(rows)] = alike - 1
        meter.advance(len(rows))
    return found, relevant


def _score(found: np.ndarray, relevant: np.ndarray, others: int) -> ListScore:
    """The means over queries for lists of one length, of `others` nodes."""
    k = found.shape[1]
    hits = np.cumsum(found, axis=1)
    within = np.minimum(relevant, k)
    precision_at_hits = (found * hits / np.arange(1, k + 1)).sum(axis=1)
    return ListScore(
        k=k,
        precision=float(np.mean(hits[:, -1] / k)),
        recall=float(np.mean(hits[:, -1] / relevant)),
        average_precision=float(np.mean(precision_at_hits / within)),
        chance_precision=float(np.mean(relevant / others)),
        chance_recall=k / others,
        most_recall=float(np.mean(within / relevant)),
    )
