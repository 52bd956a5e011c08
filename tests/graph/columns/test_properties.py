"""For random tables: every value is encoded, no other is, and JSON keeps the encoder."""

import json
import math
import warnings

import polars as pl
import pytest

from neural_brane.errors import ReadingWarning
from neural_brane.graph.columns import MISSING, infer_columns
from neural_brane.graph.encoder import Encoder

hypothesis = pytest.importorskip("hypothesis", reason="install hypothesis to test with random tables")
st = hypothesis.strategies

WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=6)
VALUES = {
    "category": st.none() | WORDS | st.sampled_from([*MISSING, " "]),
    "number": st.none() | st.floats() | st.integers(-5, 5).map(float),
    "boolean": st.none() | st.booleans(),
    "list": st.none() | st.lists(WORDS, max_size=4),
}


@st.composite
def tables(draw):
    rows = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    columns = {
        f"{kind}{at}": draw(st.lists(VALUES[kind], min_size=rows, max_size=rows)) for at, kind in enumerate(kinds)
    }
    types = {"category": pl.String, "number": pl.Float64, "boolean": pl.Boolean, "list": pl.List(pl.String)}
    frame = pl.DataFrame(columns, schema={name: types[name[:-1]] for name in columns})
    return frame, {name: name[:-1] for name in columns}


def expected(kind, value):
    """Return the number of attributes of a value."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return 0
    if kind == "list":
        return len({member.strip() for member in value} - set(MISSING))
    if kind == "category":
        return int(value.strip() not in MISSING)
    return int(value) if kind == "boolean" else 1


@hypothesis.settings(max_examples=60, deadline=None, derandomize=True)
@hypothesis.given(tables())
def test_every_value_is_encoded(drawn):
    frame, kinds = drawn
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)  # infinite numbers are missing
        encoder = Encoder.fit(frame, infer_columns(frame, columns=kinds))
        matrix, names = encoder.encode(frame)
        again = Encoder.from_dict(json.loads(json.dumps(encoder.as_dict())))
        other = again.encode(frame)[0]
    assert (other != matrix).nnz == 0
    assert json.dumps(again.as_dict()) == json.dumps(encoder.as_dict())
    assert len(set(names.tolist())) == matrix.shape[1]
    for name, kind in kinds.items():
        own = [place for place, one in enumerate(names) if one in set(encoder.names_of(name))]
        counts = matrix[:, own].sum(axis=1)
        assert counts.tolist() == [expected(kind, value) for value in frame[name].to_list()], name
