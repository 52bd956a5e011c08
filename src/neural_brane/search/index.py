"""Search by a faiss index: nearly all of the nearest nodes without looking at every vector."""

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
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np

from neural_brane.errors import DependencyError, EmbeddingError, ParameterError
from neural_brane.files.npz import read_array
from neural_brane.files.storage import atomic, check_target
from neural_brane.files.vectors.formats import merge_parts
from neural_brane.files.vectors.parts import StoredColumn, StoredRows, open_parts
from neural_brane.graph.ids import as_ids
from neural_brane.progress import Meter, Reporter
from neural_brane.search.exact import (
    HasVectors,
    as_answers,
    check_count,
    describe,
    find_rows,
    nearest_nodes,
    nearest_rows,
    similarities,
    understand,
    unit_rows,
)

# An index by faiss finds nearly all of the nearest nodes without looking at every vector.
#
# Vectors at length 1 lie in lists, each around a centre that k-means has found; a query is compared with the lists
# whose centres are nearest (IVF-Flat, inner product). How many lists that are is measured when the index is built: as
# few as find the asked share of what exact search finds. IVF-Flat is built several times faster than a graph of
# neighbours (HNSW), and its lists can be memory-mapped.

BLOCK_ROWS = 65_536  # added at a time
PER_CENTRE = 64  # vectors that k-means sees for each of its centres; faiss asks for 39 at least
SAMPLE = 200  # nodes that recall is measured on
NEAREST = 10  # and how many of the nearest are compared


class Index:
    """Finds nodes near a node or a vector; `Embedding.index()` builds it, and `load_index` opens it.

    Attributes
    ----------
    ids
        The nodes' ids, in the order of the vectors.
    provenance
        What made the vectors.
    recall
        The share of the ten nearest that the index found on a sample of nodes, when it was built.
    """

    def __init__(
        self, lists: Any, ids: np.ndarray, provenance: dict[str, Any], recall: float, threads: int | None = None
    ):
        self.lists, self.ids, self.provenance, self.recall, self.threads = lists, ids, provenance, recall, threads
        lists.make_direct_map()  # where each row lies, so that a node's own vector can be had

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return (
            f"Index({len(self):,} × {self.dim}; {self.lists.nprobe} of {self.lists.nlist} lists, recall {self.recall})"
        )

    @property
    def dim(self) -> int:
        """The width of a vector."""
        return int(self.lists.d)

    def nearest(self, target: Any, k: int = 10) -> Any:
        """The `k` nearest nodes with their cosine, as `Embedding.nearest` gives them; nearly always the same ones."""
        wanted = check_count(k)
        question = understand(target, self.ids, self.dim)
        rows = question.rows if question.rows is not None else np.empty(0, np.int64)
        queries = question.vectors if question.vectors is not None else self.vectors_of(rows)
        found, cosines = self._search(unit_rows(queries), min(wanted + (question.rows is not None), len(self)))
        kept = found != (-1 if question.rows is None else question.rows[:, None])
        best = [(row[keep][:wanted], own[keep][:wanted]) for row, own, keep in zip(found, cosines, kept, strict=True)]
        return as_answers(self.ids, [row for row, _ in best], [own for _, own in best], question.single)

    def save(self, path: str | Path) -> None:
        """Write the index with its ids to one file, which `load_index` opens by memory map."""
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
        """Rows and cosines, best first, equal ones by row; row -1 where the lists held too few."""
        with _threads(self.threads):
            cosines, rows = self.lists.search(queries, k)
        rows = np.where((rows >= 0) & (rows < len(self)), rows, -1)
        cosines = np.where(rows < 0, -np.inf, np.clip(cosines, -1, 1)).astype(np.float32)
        order = np.lexsort((rows, -cosines), axis=1)
        return np.take_along_axis(rows, order, axis=1), np.take_along_axis(cosines, order, axis=1)

    def vectors_of(self, rows: np.ndarray) -> np.ndarray:
        """The vectors of some rows, at length 1."""
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
    """Build an index over vectors, by default of about twice as many lists as the root of their number.

    Parameters
    ----------
    source
        Vectors with the ids of their nodes and their provenance.
    recall
        The share of the ten nearest to find; the number of lists to look into is measured on a sample of nodes.
    lists
        The number of lists.
    seed
        For k-means and the sample; the same seed and number of threads give the same index.
    threads
        Cores to use, all of them by default.
    """
    faiss, vectors = import_faiss(), source.vectors
    if not 0 < recall <= 1:
        raise ParameterError(f"recall={recall!r} makes no sense; give a share above 0 and up to 1, as in recall=0.98")
    if not len(vectors) or not vectors.shape[1]:
        raise ParameterError("there are no vectors to build an index over; give an embedding with nodes")
    usual = max(1, min(round(2 * math.sqrt(len(vectors))), len(vectors) // 39))
    count = usual if lists is None else lists
    if not 1 <= count <= len(vectors):
        raise ParameterError(f"lists={lists!r} makes no sense; give a number from 1 to {len(vectors)}, the nodes")
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
    exact = nearest_rows(vectors, vectors[sample], NEAREST, threads=threads).rows
    index.recall = _choose_probes(index, vectors[sample], exact, recall)
    return index


def _choose_probes(index: Index, queries: np.ndarray, exact: np.ndarray, wanted: float) -> float:
    """Look into as few lists as find the wanted share of what exact search finds; returns the share that is found."""
    unit = unit_rows(queries)
    probes, share = 1, 0.0
    while True:
        index.lists.nprobe = min(probes, index.lists.nlist)
        found, _ = index._search(unit, exact.shape[1])
        share = float(np.mean([np.isin(one, other).mean() for one, other in zip(exact, found, strict=True)]))
        if share >= wanted or probes >= index.lists.nlist:
            return round(share, 4)
        probes = max(probes + 1, probes * 5 // 4)


def import_faiss() -> Any:
    """The faiss module, or an error that says how to get it."""
    try:
        import faiss
    except ImportError as error:
        raise DependencyError(
            "an index needs faiss, which is not installed; run: pip install 'neural-brane[search]', or search exactly "
            "with embedding.nearest"
        ) from error
    return faiss


@contextmanager
def _threads(threads: int | None) -> Iterator[None]:
    """Let faiss use so many threads: their number belongs to the whole process, so it is put back."""
    faiss = import_faiss()
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(threads or os.cpu_count() or 1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


# An index as one file that is opened by memory map.
#
# ::
#
#     what faiss writes    the centres, then the lists of vectors
#     ids                  an .npy array
#     about                JSON: provenance, recall, lists to look into
#     footer               lengths and SHA-256 of the three, their own SHA-256 cut to 8 bytes, and a mark
#
# faiss reads from the beginning of a file and stops where its part ends, so ours follows. faiss trusts what it reads: a
# damaged file could end the process. So the footer is checked before faiss sees the file, and the whole file unless
# `check=False`.

SUFFIX = ".faiss"
MARK = b"brane index 1\n\0\0"
FOOTER = struct.Struct("<3Q32s32s32s")
CHECK_BYTES = 8
CHECKED_IDS = 1 << 17  # compared at a time
CHUNK = 1 << 20


class Footer(NamedTuple):
    """Lengths and checksums of the three parts of the file."""

    lengths: tuple[int, int, int]
    digests: tuple[bytes, bytes, bytes]


def check_index_target(path: str | Path) -> Path:
    """Refuse a path that no index can be written to, before the work of building one."""
    return check_target(path, (SUFFIX,), SUFFIX, EmbeddingError)


def check_belongs(
    path: str | Path, index: Index, vectors: np.ndarray | StoredRows, ids: np.ndarray | StoredColumn
) -> None:
    """Refuse an index of other nodes, or of other vectors: the first, the middle and the last are compared."""
    rows = np.unique([0, len(ids) // 2, len(ids) - 1]) if len(ids) else np.empty(0, np.int64)
    spans = [slice(at, at + CHECKED_IDS) for at in range(0, len(ids), CHECKED_IDS)]
    same = len(ids) == len(index) and all(np.array_equal(index.ids[span], ids[span]) for span in spans)
    if not same or index.dim != vectors.shape[1]:
        raise EmbeddingError(f"{path}: is an index of other nodes than these vectors have; build it again")
    if not np.allclose(index.vectors_of(rows), unit_rows(vectors[rows]), atol=1e-5):
        raise EmbeddingError(f"{path}: is an index of other vectors of these nodes; build it again")


def load_index(path: str | Path, *, threads: int | None = None, check: bool = True) -> Index:
    """Open a saved index by memory map: lists are read when a query looks into them.

    `check` first reads the file once and compares it with its checksums. Without it, a large index is open in
    milliseconds; then only its ids and its size are checked, and damage elsewhere can give wrong answers or end the
    process.
    """
    faiss = import_faiss()
    path = Path(path)
    if not path.is_file():
        raise EmbeddingError(f"{path}: no such file; make one with embedding.index().save('{path.stem}{SUFFIX}')")
    with path.open("rb") as file:
        footer = _read_footer(path, file)
        if check and _digest(file, footer.lengths[0]) != footer.digests[0]:
            _refuse(path, "the lists are not what their checksum says")
        file.seek(footer.lengths[0])
        ids, about = (file.read(length) for length in footer.lengths[1:])
        if tuple(hashlib.sha256(part).digest() for part in (ids, about)) != footer.digests[1:]:
            _refuse(path, "its ids or its provenance are not what their checksum says")
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


def _read_footer(path: Path, file: IO[bytes]) -> Footer:
    size = os.fstat(file.fileno()).st_size
    tail = FOOTER.size + CHECK_BYTES + len(MARK)
    file.seek(max(size - tail, 0))
    data = file.read()
    if data[-len(MARK) :] != MARK or len(data) != tail:
        raise EmbeddingError(f"{path}: is no index of ours, or is cut off; make one with embedding.index().save(…)")
    if hashlib.sha256(data[: FOOTER.size]).digest()[:CHECK_BYTES] != data[FOOTER.size : -len(MARK)]:
        _refuse(path, "its end is not what its checksum says")
    *numbers, first, second, third = FOOTER.unpack(data[: FOOTER.size])
    if sum(numbers) + tail != size:
        _refuse(path, f"it has {size:,} bytes, not {sum(numbers) + tail:,}")
    return Footer((numbers[0], numbers[1], numbers[2]), (first, second, third))


def _digest(file: IO[bytes], length: int) -> bytes:
    digest = hashlib.sha256()
    file.seek(0)
    while length and (data := file.read(min(CHUNK, length))):
        digest.update(data)
        length -= len(data)
    return digest.digest()


def _refuse(path: Path, why: str) -> NoReturn:
    raise EmbeddingError(f"{path}: the index is damaged or changed: {why}; build it again, or copy it anew") from None


# Vectors in a folder of parts stay there and are searched there.


class EmbeddingParts:
    """The vectors of a folder of parts, asked like an `Embedding` and read block by block.

    Answers are those of the merged file, to the last bit. A search keeps one number per node and a few blocks of rows
    in memory; vectors and ids are never there as a whole.

    Parameters
    ----------
    folder
        As `brane distributed embed -o FOLDER` or `brane convert FILE -o FOLDER --parts N` writes it.
    check
        Read all files once and compare them with their checksums. Without it a folder is open in milliseconds, and
        damage to vectors in .npy parts may go unnoticed; Parquet parts are compared before they are read.

    Attributes
    ----------
    vectors, ids
        Tables of rows and of ids, read where they are asked for: `vectors[5:9]`, `ids[[7, 3]]`.
    provenance
        What made the vectors.

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
        """A node's vector by its id; of a list of ids, a table with a row for each."""
        single = isinstance(nodes, str) or np.ndim(nodes) == 0
        found = self.vectors[find_rows(self.ids, [nodes] if single else nodes)]
        return found[0] if single else found

    def similarity(self, one: Any, other: Any, *, matrix: bool = False, center: bool = False) -> Any:
        """The cosine of nodes or vectors, as `Embedding.similarity` gives it."""
        return similarities(self, one, other, matrix=matrix, center=center)

    def nearest(self, target: Any, k: int = 10, *, center: bool = False) -> Any:
        """The `k` nodes whose vectors point most nearly the same way, as `Embedding.nearest` gives them."""
        return nearest_nodes(self, target, k, center=center)

    def save(self, path: str | Path) -> None:
        """Merge the parts into one file, in the format that its suffix says, block by block as `brane convert` does."""
        merge_parts(self.parts.folder, path)

    def index(self, **options: Any) -> Index:
        """An index by faiss, as `Embedding.index` builds it: k-means sees a sample, and rows are added in blocks.

        The index itself holds all vectors and ids while it is built; a saved one is opened by memory map.
        """
        return build_index(self, **options)
