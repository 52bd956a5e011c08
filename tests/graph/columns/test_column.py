import pytest

from neural_brane.errors import ParameterError
from neural_brane.graph.columns import ColumnKind, read_kinds


def test_a_dict_a_list_and_a_text_mean_the_same():
    expected = {"age": ColumnKind("number", 4)}
    assert read_kinds({"age": "number:4"}) == read_kinds(["age:number:4"]) == read_kinds("age:number:4") == expected
    assert read_kinds(None) == {}


@pytest.mark.parametrize(
    ("text", "name", "kind"),
    [
        ("tags:list:;", "tags", ColumnKind("list", ";")),
        ("tags:list::", "tags", ColumnKind("list", ":")),
        ("tags:list", "tags", ColumnKind("list")),
        ("dc:title:text:5", "dc:title", ColumnKind("text", 5)),
        ("home town:category", "home town", ColumnKind("category")),
        ("note:ignored", "note", ColumnKind("ignored")),
    ],
)
def test_names_may_contain_colons_and_spaces(text, name, kind):
    assert read_kinds([text]) == {name: kind}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["age"], "'age' is not valid"),
        (["age:numeric"], "'age:numeric' is not valid; write NAME:KIND"),
        (["age:number:0"], "'0' is not a whole number above 0"),
        (["age:number:many"], "'many' is not a whole number above 0"),
        (["land:category:3"], "category takes no option; write land:category"),
        (["age:number", "age:text"], "'age' is given twice, as number and as text"),
    ],
)
def test_invalid_kinds_are_refused(given, said):
    with pytest.raises(ParameterError, match=said.replace("(", "\\(")):
        read_kinds(given)
