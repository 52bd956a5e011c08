"""A table of edges read in blocks gives the same edges as the table read at once."""

from __future__ import annotations

import numpy as np
import pytest

from neural_brane.errors import GraphError
from neural_brane.files.graphs.edge_table import read_edge_blocks, read_edge_table
from neural_brane.files.reading import Unpacked
from neural_brane.files.tables import TableReader

RANDOM = np.random.default_rng(0).integers(0, 40, (300, 2))
TEXTS = {
    "strings": "source,target\n" + "".join(f"user-{u},user-{v}\n" for u, v in RANDOM),
    "integers": "".join(f"{u}\t{v}\n" for u, v in RANDOM),
    "weights": "kind;from;to;weight\n" + "".join(f"x;{u} a;{v} a;{1 + u / 8}\n" for u, v in RANDOM),
    "quotes": '"from","to"\n' + "".join(f'"{u}, the ""{v}""","b{v}"\n' if u % 2 else f"{u},b{v}\n" for u, v in RANDOM),
    "blank lines, spaces, no end": "from,to\n\n a1 ,b1\n\nb1, c1\nc1,a1",
    "long": "from,to\n" + "".join(f"{'é' * 20}{u},{'é' * 20}{v}\n" for u, v in RANDOM),
    "large numbers": f"from,to\n{2**63},{2**63 + 1}\n7,{2**63}\n",
}
EMPTY = {"source": None, "target": None, "weight": None}


@pytest.mark.parametrize("block", [64, 1000, 1 << 20])
@pytest.mark.parametrize("kind", TEXTS)
def test_blocks_give_the_same_edges_as_the_whole_table(write, kind, block):
    path = write("edges.csv", TEXTS[kind])
    with Unpacked(path, "table") as file:
        whole = read_edge_table(file)
    with Unpacked(path, "table") as file:
        large = read_edge_table(file, large=0)
    with TableReader(path, what="table", block=block) as reader:
        blocks = read_edge_blocks(reader, EMPTY)
    for edges in (large, blocks):
        assert edges.description == whole.description
        np.testing.assert_array_equal(edges.ids, whole.ids)
        assert edges.ids.dtype.kind == whole.ids.dtype.kind
        np.testing.assert_array_equal(edges.ends, whole.ends)
        np.testing.assert_array_equal(edges.weights, whole.weights)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("user-1,", "column 'target' is empty"),
        ("user-1,nan", "column 'target' holds 'nan'"),
        ("user-1", "the line has 1 field"),
        ("user-1,user-2,9", "the line has 3 fields"),
        ('user-1,"user-2', "the quotes of this line do not match"),
    ],
)
@pytest.mark.parametrize("block", [64, 1 << 20])
def test_errors_name_the_line(write, line, message, block):
    lines = TEXTS["strings"].splitlines()
    path = write("edges.csv", "\n".join([*lines[:200], line, *lines[200:]]) + "\n")
    with (
        TableReader(path, what="table", block=block) as reader,
        pytest.raises(GraphError, match=rf"edges\.csv:201: {message}"),
    ):
        read_edge_blocks(reader, EMPTY)


def test_the_first_of_two_errors_is_reported(write):
    """A thread reads ahead, and the caller still gets the errors in the order of the lines."""
    lines = TEXTS["strings"].encode().splitlines()
    path = write("edges.csv", "")
    path.write_bytes(b"\n".join([*lines[:100], b"user-1", *lines[100:105], b"\xff,user-2", *lines[105:]]))
    with (
        TableReader(path, what="table", block=64) as reader,
        pytest.raises(GraphError, match=r"edges\.csv:101: the line has 1 field"),
    ):
        read_edge_blocks(reader, EMPTY)
