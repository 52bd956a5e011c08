import polars as pl
import pytest

from neural_brane.errors import GraphError
from neural_brane.graph.columns import infer_columns

N = 40
JUDGED = {
    "boolean words": (["yes", "no"] * 20, "boolean"),
    "boolean numbers": ([0, 1] * 20, "boolean"),
    "true or missing": (["true", None] * 20, "boolean"),
    "male and female": (["m", "f"] * 20, "category"),
    "stars": ([1, 2, 3, 4, 5] * 8, "number"),
    "years": ([1980 + at % 30 for at in range(N)], "number"),
    "money": ([f"{at * 1.25}" for at in range(N)], "number"),
    "dates": ([f"20{at:02}-02-{1 + at % 28:02}" for at in range(N)], "number"),
    "no dates": ([f"20{at:02}-13-45" for at in range(N)], "ignored"),
    "countries": (["IN", "FR", "DE", None] * 10, "category"),
    "postal codes": ([f"0{at % 9}100" for at in range(N)], "category"),
    "tags": (["a::x;b::y", "b::y", "c::z;a::x", None] * 10, "list"),
    "commas": (["red,blue", "blue", "green,red", "red"] * 10, "list"),
    "bars": ([f"t{at % 5}|t{at % 3}" for at in range(N)], "list"),
    "lists": ([["x"], ["y", "x"]] * 20, "list"),
    "prose": ([f"word{at} and some, more words" for at in range(N)], "text"),
    "job titles": (["senior software engineer", "nurse"] * 20, "category"),
    "surname, name": ([f"Smith{at}, John{at}" for at in range(N)], "ignored"),
    "mail": ([f"p{at}@example.org" for at in range(N)], "ignored"),
    "row numbers": (list(range(100, 100 + N)), "ignored"),
    "ages, all different": ([18 + 7 * at % N for at in range(N)], "number"),
    "constant": (["same"] * N, "ignored"),
    "nothing": ([None] * N, "ignored"),
    "nan": ([float("nan")] * N, "ignored"),
}


@pytest.mark.parametrize("what", JUDGED)
def test_kinds_are_those_that_a_person_would_choose(what):
    values, kind = JUDGED[what]
    column = infer_columns(pl.DataFrame({what: values}, strict=False))[0]
    assert (column.name, column.kind) == (what, kind), column.why


@pytest.mark.parametrize("what", ["stars", "years", "money", "countries", "tags", "boolean numbers", "row numbers"])
def test_text_gives_the_same_kinds_as_typed_columns(what):
    values = JUDGED[what][0]
    texts = [None if value is None else str(value) for value in values]
    typed, text = (infer_columns(pl.DataFrame({what: column}, strict=False)) for column in (values, texts))
    assert typed == text


def test_columns_have_counts_examples_and_reasons():
    column = infer_columns(pl.DataFrame({"land": ["IN", "FR", None, "IN", ""], "k": ["x" * 50] * 5}))[0]
    assert (column.missing, column.distinct, column.examples) == (2, 2, ("IN", "FR"))
    constant = infer_columns(pl.DataFrame({"k": ["x" * 50] * 5}))[0]
    assert constant.why == "every row has the same value"
    assert constant.examples == ("x" * 23 + "…",)


def test_an_id_column_beside_the_nodes_own_is_ignored():
    frame = pl.DataFrame({"user_id": [7 * at for at in range(N)], "height": [7 * at for at in range(N)]})
    assert [column.kind for column in infer_columns(frame)] == ["ignored", "number"]


def test_given_kinds_are_used():
    frame = pl.DataFrame(
        {"node": ["a", "b"], "age": ["1", "2"], "tags": ["x|y", "y"], "mail": ["p@q", "r@s"], "c": ["u", "v"]}
    )
    given = {"age": "number:3", "tags": "list", "c": "text:1"}
    columns = infer_columns(frame, columns=given, ignore=["mail"], id="node")
    assert [(column.kind, column.option) for column in columns] == [
        ("id", None),
        ("number", 3),
        ("list", "|"),
        ("ignored", None),
        ("text", 1),
    ]


def test_missing_columns_and_columns_with_two_roles_are_refused():
    frame = pl.DataFrame({"node": [1], "age": [2]})
    with pytest.raises(GraphError, match=r"column 'aeg'.*'node'.*'age'"):
        infer_columns(frame, ignore=["aeg"])
    with pytest.raises(GraphError, match=r"'age'.*label"):
        infer_columns(frame, columns=["age:number"], label="age")
