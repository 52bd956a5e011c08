import json

import numpy as np
import polars as pl
import pytest

from neural_brane.errors import GraphError, ParameterError
from neural_brane.graph.columns import infer_columns
from neural_brane.graph.encoder import Encoder

PEOPLE = pl.DataFrame(
    {
        "age": [31, 45, None, 31, 60],
        "land": ["IN", "FR", "IN", None, "FR"],
        "tags": ["tea;chess", "tea", None, "chess;tea", "pie"],
        "member": [True, False, None, True, True],
        "about": ["likes old books", "likes new books", None, "reads old news", "hates most pies"],
        "same": [1] * 5,
    }
)
GIVEN = {"tags": "list:;", "about": "text:2"}


def fit(frame=PEOPLE, missing="none", **options):
    options = {"columns": GIVEN} | options
    return Encoder.fit(frame, infer_columns(frame, **options), missing=missing)


def bags(encoder, frame):
    """Return the names of the attributes of each row."""
    matrix, names = encoder.encode(frame)
    assert matrix.has_canonical_format
    assert matrix.dtype == np.float32
    assert (matrix.data == 1).all()
    return [
        set(names[matrix.indices[start:stop]].tolist())
        for start, stop in zip(matrix.indptr, matrix.indptr[1:], strict=False)
    ]


def test_every_value_has_its_attribute():
    found = bags(fit(), PEOPLE)
    assert found[0] == {
        *("age=31", "land=IN", "tags=chess", "tags=tea", "member"),
        *("about:likes", "about:old", "about:books"),
    }
    assert found[1] == {"age=45", "land=FR", "tags=tea", "about:books", "about:likes"}
    assert found[2] == {"land=IN"}
    assert found[4] == {"age=60", "land=FR", "tags=pie", "member"}


def test_missing_values_can_be_an_attribute():
    encoder = fit(missing="attribute")
    found = bags(encoder, PEOPLE)
    assert found[2] == {"land=IN", "age=missing", "tags=missing", "member=missing", "about=missing"}
    assert "land=missing" in found[3]
    assert not any("=missing" in name for name in found[0])
    assert "same=missing" not in encoder.names
    with pytest.raises(ParameterError, match=r"missing.*'drop'.*'none'"):
        fit(missing="drop")


def test_new_nodes_are_encoded_in_the_same_way_and_new_values_give_warnings():
    new = pl.DataFrame(
        {"age": ["99"], "land": ["DE"], "tags": ["tea;ale"], "member": ["no"], "about": ["new books"], "same": [7]}
    )
    with (
        pytest.warns(UserWarning, match=r"1 values.*'land'.*'DE'"),
        pytest.warns(UserWarning, match=r"1 values.*'tags'.*'ale'"),
    ):
        assert bags(fit(), new) == [{"age=60", "tags=tea", "about:books"}]


def test_a_table_without_a_needed_column_is_refused():
    with pytest.raises(GraphError, match=r"column 'age'.*'land'"):
        fit().encode(PEOPLE.select("land"))


@pytest.mark.parametrize("missing", ["none", "attribute"])
def test_json_keeps_everything_except_the_examples(missing):
    encoder = fit(missing=missing)
    kept = json.dumps(encoder.as_dict())
    again = Encoder.from_dict(json.loads(kept))
    assert json.dumps(again.as_dict()) == kept
    assert again.names.tolist() == encoder.names.tolist()
    assert bags(again, PEOPLE) == bags(encoder, PEOPLE)
    assert "hates most pies" not in kept


@pytest.mark.parametrize("damaged", [None, [], {}, {"columns": [{}]}, {"columns": [{"name": "a", "kind": "category"}]}])
def test_data_that_is_not_an_encoder_is_refused(damaged):
    with pytest.raises(GraphError, match=r"encoder.*Error"):
        Encoder.from_dict(damaged)


def test_two_columns_that_give_the_same_name_are_refused():
    frame = pl.DataFrame({"a": ["b=c", "b=c", "d"], "a=b": ["c", "c", "d"]})
    with pytest.raises(GraphError, match=r"columns 'a'.*'a=b'.*'a=b=c'"):
        fit(frame, columns=None)


def test_a_table_with_nothing_to_encode_gives_no_attributes():
    matrix, names = fit(PEOPLE.select("same"), columns=None).encode(PEOPLE)
    assert (matrix.shape, len(names)) == ((5, 0), 0)
    assert fit().encode(PEOPLE.clear())[0].shape == (0, len(fit().names))
