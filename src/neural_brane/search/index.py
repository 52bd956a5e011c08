"""Search with a faiss index, which finds nearly all of the nearest nodes without comparing every vector."""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import IO, Any, NoReturn

import numpy as np

from neural_brane.errors import DependencyError, EmbeddingError, ParameterError
from neural_brane.files.npz import read_array
from neural_brane.files.reading import check_file
from neural_brane.files.storage import atomic, check_target, exists
from neural_brane.files.vectors.formats import merge_parts
from neural_brane.files.vectors.parts import StoredColumn, StoredRows, open_parts
from neural_brane.graph.ids import as_ids
from neural_brane.progress import Meter, Reporter
from neural_brane.search import exact as exactly
from neural_brane.search.exact import HasVectors, as_answers, check_count, describe, find_rows, nearest_nodes, unit_rows

# Vectors, scaled to length 1, are divided into lists by k-means. A search compares a query only with the lists whose
# centres are nearest (faiss calls this IVF-Flat). Building the index measures how many lists a search must read to find
# the requested share of the nearest nodes. IVF-Flat is built several times faster than a graph of neighbours (HNSW),
# and its lists can be memory-mapped.

BLOCK_ROWS = 65_536  # vectors added at a time
PER_CENTRE = 64  # vectors per centre in the sample for k-means; faiss wants at least 39
SAMPLE = 200  # nodes used to measure recall
NEAREST = 10  # nearest nodes compared for each of them


class Index:
    """An index for fast search; `Embedding.index` builds it, `load_index` opens a saved one.

    Attributes
    ----------
    ids : ndarray, shape (nodes,)
        The ids of the nodes, in the order of the vectors.
    provenance : dict
        The method, parameters, data and version that made the vectors.
    recall : float
        The share of the ten nearest nodes that the index found for a sample of nodes when it was built.
    """

    def __init__(
        self, lists: Any, ids: np.ndarray, provenance: dict[str, Any], recall: float, threads: int | None = None
    ):
        self.lists, self.ids, self.provenance, self.recall, self.threads = lists, ids, provenance, recall, threads
        lists.make_direct_map()  # lets `reconstruct` return the vector of a row

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        lists = f"{self.lists.nprobe} of {self.lists.nlist} lists"
        return f"Index({len(self):,} × {self.dim}; {lists}, recall {self.recall})"

    @property
    def dim(self) -> int:
        """The width of a vector."""
        return int(self.lists.d)

    def nearest(self, target: Any, k: int = 10) -> Any:
        """Return the `k` nearest nodes of ids or vectors with their cosine, as `Embedding.nearest` does.

        Nearly all of them are the same as those of exact search; `recall` is the share.
        """
        count = check_count(k)
        query = exactly.parse_query(target, self.ids, self.dim)
        rows = query.rows if query.rows is not None else np.empty(0, np.int64)
        queries = query.vectors if query.vectors is not None else self.vectors_of(rows)
        found, cosines = self._search(unit_rows(queries), min(count + (query.rows is not None), len(self)))
        kept = found != (-1 if query.rows is None else query.rows[:, None])
        best = [(row[keep][:count], own[keep][:count]) for row, own, keep in zip(found, cosines, kept, strict=True)]
        return as_answers(self.ids, [row for row, _ in best], [own for _, own in best], query.single)

    def save(self, path: str | Path) -> None:
        """Write the index and its ids to one .faiss file for `load_index`."""
        path = check_index_target(path)
        ids = BytesIO()
        np.lib.format.write_array(ids, self.ids, allow_pickle=False)
        about = {"provenance": self.provenance, "recall": self.recall, "probes": int(self.lists.nprobe)}
        parts = [ids.getvalue(), json.dumps(about).encode()]
        with atomic(path) as draft:
            import_faiss().write_index(self.lists, str(draft))
            size = draft.stat().st_size
            with draft.open("rb") as file:
                digests = [_digest(file, size), *(hashlib.sha256(part).digest() for part in parts)]
            footer = FOOTER.pack(size, *map(len, parts), *digests)
            with draft.open("ab") as file:
                file.write(b"".join([*parts, footer, hashlib.sha256(footer).digest()[:CHECK_BYTES], MARK]))

    def _search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return rows and cosines, best first, ties by row; row -1 if the lists contain too few vectors."""
        with _threads(self.threads):
            cosines, rows = self.lists.search(queries, k)
        rows = np.where((rows >= 0) & (rows < len(self)), rows, -1)
        cosines = np.where(rows < 0, -np.inf, np.clip(cosines, -1, 1)).astype(np.float32)
        order = np.lexsort((rows, -cosines), axis=1)
        return np.take_along_axis(rows, order, axis=1), np.take_along_axis(cosines, order, axis=1)

    def vectors_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of rows, scaled to length 1, (rows, dim) float32."""
        return np.array([self.lists.reconstruct(int(row)) for row in rows], np.float32).reshape(-1, self.dim)


def build_index(
    source: HasVectors,
    *,
    recall: float = 0.98,
    lists: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Reporter | None = None,
) -> Index:
    """Return a new index over vectors.

    recall: the share of the ten nearest nodes to find, measured on a sample of nodes. lists: the number of lists, by
    default about twice the square root of the number of vectors. seed: for k-means and the sample; the same seed and
    number of threads give the same index. threads: CPU cores to use, all by default.
    """
    faiss, vectors = import_faiss(), source.vectors
    if not 0 < recall <= 1:
        raise ParameterError(f"recall={recall!r} makes no sense; give a share above 0 and up to 1, as in recall=0.98")
    if not len(vectors) or not vectors.shape[1]:
        raise ParameterError("there are no vectors to build an index over; give an embedding with nodes")
    usual = max(1, min(round(2 * math.sqrt(len(vectors))), len(vectors) // 39))
    count = usual if lists is None else lists
    if not 1 <= count <= len(vectors):
        raise ParameterError(f"lists={lists!r} makes no sense; give 1 to {len(vectors)}, the number of nodes")
    random = np.random.default_rng(seed)
    made = faiss.IndexIVFFlat(faiss.IndexFlatIP(vectors.shape[1]), vectors.shape[1], count, faiss.METRIC_INNER_PRODUCT)
    made.cp.seed, made.cp.min_points_per_centroid = int(random.integers(1 << 30)), 1
    seen = np.sort(random.permutation(len(vectors))[: PER_CENTRE * count])
    with _threads(threads):
        meter = Meter(progress, len(seen) + len(vectors), "vectors")
        made.train(unit_rows(vectors[seen]))
        meter.advance(len(seen))
        for start in range(0, len(vectors), BLOCK_ROWS):
            made.add(unit_rows(vectors[start : start + BLOCK_ROWS]))
            meter.advance(len(vectors[start : start + BLOCK_ROWS]))
    index = Index(made, np.asarray(source.ids), source.provenance, 1.0, threads)
    sample = np.sort(random.permutation(len(vectors))[:SAMPLE])
    exact = exactly.nearest_rows(vectors, vectors[sample], NEAREST, threads=threads).rows
    index.recall = _choose_probes(index, vectors[sample], exact, recall)
    return index


def _choose_probes(index: Index, queries: np.ndarray, exact: np.ndarray, recall: float) -> float:
    """Let the index read the fewest lists that reach a recall of exact search's rows; return the reached recall."""
    unit = unit_rows(queries)
    probes, share = 1, 0.0
    while True:
        index.lists.nprobe = min(probes, index.lists.nlist)
        found, _ = index._search(unit, exact.shape[1])
        share = float(np.mean([np.isin(one, other).mean() for one, other in zip(exact, found, strict=True)]))
        if share >= recall or probes >= index.lists.nlist:
            return round(share, 4)
        probes = max(probes + 1, probes * 5 // 4)


def import_faiss() -> Any:
    """Return the faiss module, or raise an error that says how to install it."""
    try:
        import faiss
    except ImportError as error:
        advice = "run: pip install 'neural-brane[search]', or search exactly with embedding.nearest"
        raise DependencyError(f"an index needs faiss, which is not installed; {advice}") from error
    return faiss


@contextmanager
def _threads(threads: int | None) -> Iterator[None]:
    """Let faiss use so many threads in the block; restore the number afterwards, because it is global."""
    faiss = import_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads or os.cpu_count() or 1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


# The file of an index::
#
#     faiss index    the centres, then the lists of vectors
#     ids            an .npy array
#     about          JSON: provenance, recall, number of lists to read
#     footer         lengths and SHA-256 of these three, the footer's own SHA-256 cut to 8 bytes, and MARK
#
# faiss reads the beginning of a file and ignores what follows its own data. A damaged file could crash it, so the
# footer is checked before faiss opens the file, and the whole file unless `check=False`.

SUFFIX = ".faiss"
MARK = b"brane index 1\n\0\0"
FOOTER = struct.Struct("<3Q32s32s32s")
CHECK_BYTES = 8
CHECKED_IDS = 1 << 17  # ids compared at a time
CHUNK = 1 << 20  # bytes hashed at a time


def check_index_target(path: str | Path) -> Path:
    """Return the path; refuse one that no index can be written to, before an index is built."""
    return check_target(path, (SUFFIX,), SUFFIX, EmbeddingError)


def check_belongs(
    path: str | Path, index: Index, vectors: np.ndarray | StoredRows, ids: np.ndarray | StoredColumn
) -> None:
    """Refuse an index of other nodes or other vectors; the first, middle and last vectors are compared."""
    rows = np.unique([0, len(ids) // 2, len(ids) - 1]) if len(ids) else np.empty(0, np.int64)
    spans = [slice(at, at + CHECKED_IDS) for at in range(0, len(ids), CHECKED_IDS)]
    same = len(ids) == len(index) and all(np.array_equal(index.ids[span], ids[span]) for span in spans)
    if not same or index.dim != vectors.shape[1]:
        raise EmbeddingError(f"{path}: this index contains other nodes than the vectors; build it again")
    if not np.allclose(index.vectors_of(rows), unit_rows(vectors[rows]), atol=1e-5):
        raise EmbeddingError(f"{path}: this index contains other vectors of these nodes; build it again")


def load_index(path: str | Path, *, threads: int | None = None, check: bool = True) -> Index:
    """Open a saved index by memory map; each search reads only the lists that it needs.

    Parameters
    ----------
    path : str or Path
        A file that `Index.save` wrote.
    threads : int, optional
        CPU cores to use, all by default.
    check : bool
        If true, read the whole file and compare it with its checksums. If false, a large index opens in milliseconds,
        but only ids and size are checked; damage elsewhere can give wrong answers or crash Python.

    Returns
    -------
    Index
        The index.

    Examples
    --------
    >>> import tempfile
    >>> from neural_brane import Embedding
    >>> file = Path(tempfile.mkdtemp()) / "nodes.faiss"
    >>> Embedding([[1, 0], [2, 0], [0, 1]], ["ann", "bob", "cat"]).index().save(file)
    >>> load_index(file).nearest("ann", k=1)
    [('bob', 1.0)]
    """
    faiss = import_faiss()
    path = Path(path)
    if not exists(path, EmbeddingError):
        raise EmbeddingError(f"{path}: no such file; make one with embedding.index().save('{path.stem}{SUFFIX}')")
    check_file(path, EmbeddingError, whole=False)
    with path.open("rb") as file:
        lengths, digests = _read_footer(path, file)
        if check and _digest(file, lengths[0]) != digests[0]:
            _refuse(path, "the lists do not match their checksum")
        file.seek(lengths[0])
        ids, about = (file.read(length) for length in lengths[1:])
        if [hashlib.sha256(part).digest() for part in (ids, about)] != digests[1:]:
            _refuse(path, "its ids or its provenance do not match their checksum")
    try:
        lists = faiss.read_index(str(path), faiss.IO_FLAG_MMAP | faiss.IO_FLAG_READ_ONLY)
        known = as_ids(read_array(BytesIO(ids), len(ids)), what=f"{path}: ids", error=EmbeddingError)
        record: dict[str, Any] = json.loads(about)
        lists.nprobe = record["probes"]
    except (RuntimeError, ValueError, LookupError, AttributeError) as failure:
        _refuse(path, str(failure).splitlines()[0])
    if lists.ntotal != len(known):
        _refuse(path, f"it has {lists.ntotal} vectors and {len(known)} ids")
    return Index(lists, known, record["provenance"], record["recall"], threads)


def _read_footer(path: Path, file: IO[bytes]) -> tuple[list[int], list[bytes]]:
    """Return the lengths and the checksums of the three parts of the file."""
    size = os.fstat(file.fileno()).st_size
    tail = FOOTER.size + CHECK_BYTES + len(MARK)
    file.seek(max(size - tail, 0))
    data = file.read()
    if data[-len(MARK) :] != MARK or len(data) != tail:
        raise EmbeddingError(f"{path}: not an index, or cut off; make one with embedding.index().save('x{SUFFIX}')")
    if hashlib.sha256(data[: FOOTER.size]).digest()[:CHECK_BYTES] != data[FOOTER.size : -len(MARK)]:
        _refuse(path, "its end does not match its checksum")
    *lengths, first, second, third = FOOTER.unpack(data[: FOOTER.size])
    if sum(lengths) + tail != size:
        _refuse(path, f"it has {size:,} bytes, not {sum(lengths) + tail:,}")
    return lengths, [first, second, third]


def _digest(file: IO[bytes], length: int) -> bytes:
    digest = hashlib.sha256()
    file.seek(0)
    while length and (data := file.read(min(CHUNK, length))):
        digest.update(data)
        length -= len(data)
    return digest.digest()


def _refuse(path: Path, why: str) -> NoReturn:
    raise EmbeddingError(f"{path}: the index is damaged: {why}; build it again, or copy the file again") from None


class EmbeddingParts:
    """The vectors of a folder of parts, for graphs whose vectors do not fit in memory; used like an `Embedding`.

    The folder is read block by block. A search keeps one number per node and a few blocks in memory, and returns
    exactly the same as a search in the merged file.

    Parameters
    ----------
    folder : str or Path
        A folder that `brane distributed embed -o FOLDER` or `brane convert FILE -o FOLDER --parts N` wrote.
    check : bool
        If true, read all files and compare them with their checksums. If false, the folder opens in milliseconds, and
        damage in .npy parts may go unnoticed; Parquet parts are checked whenever they are read.

    Attributes
    ----------
    vectors, ids
        The rows, (nodes, dim) float32, and the ids, (nodes,); index them to read from disk, as in `vectors[5:9]`.
    provenance : dict
        The method, parameters, data and version that made the vectors.

    Examples
    --------
    >>> import tempfile
    >>> from neural_brane.files.vectors.parts import write_parts
    >>> folder = Path(tempfile.mkdtemp())
    >>> write_parts(folder, np.array(["a", "b", "c"]), np.array([[1, 0], [2, 0], [0, 1]], np.float32), parts=2)
    >>> e = EmbeddingParts(folder)
    >>> e.nearest("a", k=2), e["c"].tolist(), len(e), e.dim
    ([('b', 1.0), ('c', 0.0)], [0.0, 1.0], 3, 2)
    """

    def __init__(self, folder: str | Path, *, check: bool = True):
        self.parts = open_parts(folder)
        if check:
            self.parts.check()
        self.vectors, self.ids, self.provenance = self.parts.vectors, self.parts.ids, self.parts.provenance

    @property
    def dim(self) -> int:
        """The width of a vector."""
        return self.parts.dim

    def __len__(self) -> int:
        return self.parts.nodes

    def __repr__(self) -> str:
        return f"EmbeddingParts({describe(self)})"

    def __getitem__(self, nodes: Any) -> np.ndarray:
        """Return the vector of a node by its id, (dim,), or a table with one row per id of a list."""
        single = isinstance(nodes, str) or np.ndim(nodes) == 0
        rows = self.vectors[find_rows(self.ids, [nodes] if single else nodes)]
        return rows[0] if single else rows

    def similarity(self, one: Any, other: Any, *, matrix: bool = False, center: bool = False) -> Any:
        """Return the cosine of nodes or vectors, as `Embedding.similarity` does."""
        return exactly.similarities(self, one, other, matrix=matrix, center=center)

    def nearest(self, target: Any, k: int = 10, *, center: bool = False) -> Any:
        """Return the `k` nodes with the highest cosine, as `Embedding.nearest` does."""
        return nearest_nodes(self, target, k, center=center)

    def save(self, path: str | Path) -> None:
        """Merge the parts into one file, block by block; the suffix of the path decides its format."""
        merge_parts(self.parts.folder, path)

    def index(self, **options: Any) -> Index:
        """Return a new index, as `Embedding.index` does. All vectors and ids must fit in memory meanwhile."""
        return build_index(self, **options)
