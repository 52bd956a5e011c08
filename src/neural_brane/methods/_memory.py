"""How much memory a training takes, by formulas: nothing is allocated to find out.

A method names the moments at which it takes most, and for each of them what is there besides the graph: bytes by part.
The formulas count arrays as the code makes them, so whoever changes the arrays changes the formula beside them;
`benchmarks/estimate.py` compares them with what is measured.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from neural_brane.graph.sizes import Sizes
from neural_brane.linalg.eigenvectors import OVERSAMPLING
from neural_brane.linalg.tables import BLOCK_ROWS
from neural_brane.linalg.threads import SLAB_COLUMNS
from neural_brane.memory import available, require_memory

if TYPE_CHECKING:
    from neural_brane.methods.base import Embedder

Moments = Mapping[str, Mapping[str, int]]  # the bytes of each part, by moment

SINGLE, DOUBLE = 4, 8  # bytes of a float32 and of a float64
WEIGHED = DOUBLE + 4  # of an entry of a weighed matrix: a float64 and a column's number
FOLLOWING = ("spectral_dim", "attribute_dim", "hidden")  # follow from dim, unless they are given
ALIAS = 56  # bytes an item while an alias table is made; 8 stay


def largest(moments: Moments) -> tuple[str, dict[str, int]]:
    """The moment that takes most, and its parts."""
    name = max(moments, key=lambda one: sum(moments[one].values()))
    return name, dict(moments[name])


def needed(method: "Embedder", sizes: Sizes) -> int:
    """The bytes that a training takes besides the graph."""
    return sum(largest(method.memory(sizes))[1].values())


def check_room(method: "Embedder", sizes: Sizes, *, beside: int = 0, room: int | None = None) -> None:
    """Refuse, before anything is allocated, a training that does not fit.

    beside: bytes that something else will take, as a graph that is not there yet. room: what is available unless given.
    """
    room = available() if room is None else room
    asked = needed(method, sizes) + beside
    if room is None or asked <= room or method.get_params(deep=False).get("device") == "cuda":
        return  # a GPU has a memory of its own, which is looked at before it is used
    dim = widest(method, sizes, room - beside)
    mend = f"dim={dim} would fit" if dim else "no dim would fit: use a machine with more memory"
    what = f"{method.title} with dim={method.dim} on a graph of {sizes.nodes:,} nodes"
    advice = "'brane estimate' shows what takes how much, also for other methods"
    require_memory(asked, what, f"{mend}; {advice}", room=room)


def widest(method: "Embedder", sizes: Sizes, room: int) -> int | None:
    """The largest of dim / 2, dim / 4, … that fits into so many bytes; None where none does."""
    dim = method.dim
    while dim > 2:
        dim //= 2
        if needed(clone(method).set_params(dim=dim), sizes) <= room:
            return dim
    return None


def clone(method: "Embedder") -> "Embedder":
    """A method with the same parameters, whose widths follow from dim where that is how they came to be."""
    values = method.get_params(deep=False)
    return type(method)(**{name: value for name, value in values.items() if name not in FOLLOWING})


def spectral_moments(sizes: Sizes, dim: int, *, hops: int, links: bool = False) -> Moments:
    """Of the leading directions of attributes (and links) seen over some hops, on the CPU.

    The matrices are the weighed attributes and their transpose; the adjacency is used as it is, between scales. The
    basis is one table, `OVERSAMPLING` wider than the result and a multiple of `SLAB_COLUMNS`; slabs of it are
    multiplied hop by hop. At the end the averages over neighbours fill a second table.
    """
    n, entries = sizes.nodes, sizes.attribute_entries
    width = spectral_width(n, dim)
    basis = SINGLE * n * width + 3 * DOUBLE * width * width
    blocks = (os.cpu_count() or 1) * min(BLOCK_ROWS, n) * width * DOUBLE  # one for each thread, in double precision
    slab = SINGLE * n * SLAB_COLUMNS
    matrices = 16 * entries + 16 * sizes.attributes + 32 * n + (48 * n if hops > 1 or links else 0)
    held = {"spectral part": matrices + basis}
    slabs = hops + (4 if links or hops > 1 else 3)
    second = basis + blocks if hops > 1 else blocks
    return {
        "weighing attributes": {"spectral part": max(2 * WEIGHED * entries, 8 * entries + DOUBLE * sizes.links)},
        "spectral products": {"spectral part": held["spectral part"] + max(slabs * slab, second)},
        "spectral vectors": held | {"vectors": SINGLE * n * dim},
    }


def spectral_width(nodes: int, dim: int) -> int:
    """The columns of the basis that `dim` directions are found with."""
    return -(-min(nodes, dim + OVERSAMPLING) // SLAB_COLUMNS) * SLAB_COLUMNS


def neighbour_bytes(sizes: Sizes) -> int:
    """Of what neighbours are drawn from: the adjacency's own entries, and running sums where edges have weights."""
    return 8 * sizes.nodes + (DOUBLE * sizes.links if sizes.weighted else 0)
