"""Score search by cosine: count how many of the nearest nodes have the same class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from neural_brane.errors import EmbeddingError, ParameterError
from neural_brane.evaluate.labelled import Result, Scored, Vectors, are_labelled, check_several, labelled_rows
from neural_brane.graph.labels import MultiLabels
from neural_brane.progress import Meter, Reporter
from neural_brane.search.exact import Exact

LENGTHS = (1, 10, 100)  # default lengths of lists
QUERIES = 10_000  # most queries; from more nodes, a sample is drawn
BLOCK_ENTRIES = 2**22  # pairs of a query and a node that are computed at a time


@dataclass(frozen=True, slots=True)
class ListScore(Result):
    """The mean scores of lists of one length over all queries."""

    k: int
    precision: float  # share of the list that has the query's class
    recall: float  # share of the other nodes of the query's class that are in the list
    average_precision: float  # MAP@k: sum of the precision at every hit, divided by the largest possible number of hits
    chance_precision: float  # expected precision of a list in random order
    chance_recall: float  # expected recall of a list in random order
    most_recall: float  # recall of a perfect list; below 1 if a class has more than k other nodes


@dataclass(frozen=True, slots=True)
class Retrieval(Scored):
    """The scores of `retrieve`, one per length of lists, and how they were computed."""

    scores: tuple[ListScore, ...]
    queries: int
    alone: int  # queries that are left out because no other node has their class
    labelled: int
    unlabelled: int
    classes: tuple[str, ...]
    several: bool  # True if nodes have several labels, so that a hit is a node that shares a label
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
    """Return how many of the nearest nodes of a node, by cosine, have its class.

    Each query is a labelled node; its list contains the nearest of all other labelled nodes. A hit is a node with the
    same class or, if nodes have several labels, a node that shares a label. For comparison, the expected scores of
    lists in random order are computed exactly.

    Parameters
    ----------
    vectors, progress
        As in `classify`; vectors are no function, and their lengths do not matter.
    labels : array_like, list of lists, matrix or MultiLabels
        One label per vector, "" for none; or several labels, as in `classify_several`.
    k : int or sequence of int, optional
        Lengths of the lists; by default 1, 10 and 100, if there are so many other nodes.
    queries, seed : int
        Largest number of queries, and seed of the random sample if there are more nodes; None queries all nodes.

    Examples
    --------
    >>> vectors = np.array([[1, 0], [9, 1], [0, 1], [1, 8]])
    >>> found = retrieve(vectors, ["net", "net", "text", "text"], k=1).at(1)
    >>> found.precision, round(found.chance_precision, 3)
    (1.0, 0.333)
    """
    matrix = sparse.issparse(labels) or (isinstance(labels, np.ndarray) and labels.ndim == 2)
    several = isinstance(labels, MultiLabels) or matrix
    several = several or not all(isinstance(one, str | int | np.integer) for one in labels)
    if several:
        given = MultiLabels.from_labels(labels)
    else:
        classes = np.asarray(labels).astype(str)
        rows = np.flatnonzero(are_labelled(classes))
        given = MultiLabels.from_pairs(rows, classes[rows], len(classes))
    labelled = given.counts > 0
    table, known = labelled_rows(vectors, labelled, "labels"), given[labelled].without_unused()
    check_several(len(known.names))
    lengths = _lengths(k, len(table))
    if (queries is not None and queries < 1) or seed < 0:
        raise ParameterError(f"queries={queries}, seed={seed}: give at least one query, and a seed of 0 or more")
    rows = np.arange(len(table))
    if queries is not None and queries < len(table):
        rows = np.sort(np.random.default_rng(seed).choice(len(table), queries, replace=False))
    hits, relevant = find_hits(table, known, rows, lengths[-1], Meter(progress, len(rows), "queries"))
    findable = relevant > 0
    if not findable.any():
        raise EmbeddingError("no query shares its class with another node; label more nodes of each class")
    scores = tuple(_score(hits[findable, :length], relevant[findable], len(table) - 1) for length in lengths)
    counts = (int(findable.sum()), int((~findable).sum()), len(table), int((~labelled).sum()))
    return Retrieval(scores, *counts, known.names, several, seed)


def _lengths(k: int | Sequence[int] | None, nodes: int) -> list[int]:
    """Return the lengths of lists, increasing."""
    if k is None:
        return [length for length in LENGTHS if length < nodes]
    lengths = sorted({k} if isinstance(k, int) else set(k))
    if not lengths or lengths[0] < 1:
        raise ParameterError(f"k={k} makes no sense; give lengths of 1 or more, as in 10")
    if lengths[-1] >= nodes:
        raise ParameterError(f"k={lengths[-1]} is too large for {nodes} labelled nodes; give at most {nodes - 1}")
    return lengths


def find_hits(
    table: np.ndarray,
    known: MultiLabels,
    queries: np.ndarray,
    k: int,
    meter: Meter,
    *,
    block_entries: int = BLOCK_ENTRIES,
) -> tuple[np.ndarray, np.ndarray]:
    """Return a mask of the hits in each list (queries, k), and the number of possible hits (queries,).

    `queries` are rows of `table` (nodes, dim); `known` has the labels of its nodes.
    """
    members = known.members.astype(np.int32)
    search, single = Exact(table), bool((known.counts == 1).all())
    sizes = np.bincount(members.indices, minlength=len(known.names))
    hits, relevant = np.zeros((len(queries), k), dtype=bool), np.empty(len(queries), dtype=np.int64)
    block = max(1, block_entries // max(len(table), k))
    for at in range(0, len(queries), block):
        rows = queries[at : at + block]
        nearest = search.nearest(table[rows], k, rows).rows
        own = members[rows]
        shared = own[np.repeat(np.arange(len(rows)), k)].multiply(members[nearest.ravel()])
        hits[at : at + len(rows)] = np.asarray(shared.sum(axis=1)).reshape(len(rows), k) > 0
        # A node may share several labels with the query but counts once, so count the entries of the product.
        alike = sizes[own.indices] if single else np.diff((own @ members.T).tocsr().indptr)
        relevant[at : at + len(rows)] = alike - 1
        meter.advance(len(rows))
    return hits, relevant


def _score(hits: np.ndarray, relevant: np.ndarray, others: int) -> ListScore:
    """Return the mean scores of lists (queries, k) that are chosen from `others` nodes."""
    k = hits.shape[1]
    counts = np.cumsum(hits, axis=1)
    within = np.minimum(relevant, k)
    precision_at_hits = (hits * counts / np.arange(1, k + 1)).sum(axis=1)
    return ListScore(
        k=k,
        precision=float(np.mean(counts[:, -1] / k)),
        recall=float(np.mean(counts[:, -1] / relevant)),
        average_precision=float(np.mean(precision_at_hits / within)),
        chance_precision=float(np.mean(relevant / others)),
        chance_recall=k / others,
        most_recall=float(np.mean(within / relevant)),
    )
