from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from neural_brane.errors import ParameterError
from neural_brane.methods import METHODS
from neural_brane.methods.base import Embedder
from neural_brane.methods.parameters import parameters, parse_grid, parse_settings, summary


class Walker(Embedder):
    """Walks about.

    It does little else.

    Parameters
    ----------
    dim : width.
    p, q : return and
        in-out.
    kind : which.

    Examples
    --------
    none : whatever
    """

    title = "walker"

    def __init__(
        self,
        *,
        dim: int = 8,
        p: float | None = None,
        q: float = 1.0,
        kind: Literal["slow", "quick"] = "slow",
        sizes: tuple[int, ...] = (25, 10),
        weights: Sequence[float] | None = None,
        pair: tuple[float, float] = (0.5, 1.0),
        loud: bool = False,
        name: str = "w",
        file: str | Path | None = None,
        progress: object = None,
    ):
        pass


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dim=16", 16),
        ("p=none", None),
        ("p=0.25", 0.25),
        ("q=1e-3", 0.001),
        ("kind=quick", "quick"),
        ("sizes=5", (5,)),
        ("sizes=5, 3,2", (5, 3, 2)),
        ("pair=(1,2)", (1.0, 2.0)),
        ("weights=1,0.5", (1.0, 0.5)),
        ("loud=yes", True),
        ("loud=False", False),
        ("name=1", "1"),
        ("file=a=b.txt", "a=b.txt"),
    ],
)
def test_text_becomes_what_the_signature_says(text, value):
    parsed = parse_settings(Walker, [text])[text.partition("=")[0]]
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dim=2.5", "dim=2.5: give a whole number, as in dim=8"),
        ("p=big", "p=big: give a number or none, as in p=0.1"),
        ("kind=fast", "kind=fast: give one of slow, quick, as in kind=slow"),
        ("sizes=a", "sizes=a: give whole numbers by commas, as in sizes=25,10"),
        ("pair=1", "pair=1: give 2 numbers by commas, as in pair=0.5,1.0"),
        ("loud=2", "loud=2: give true or false, as in loud=False"),
        ("dimm=2", "dimm=2: method 'walker' has no parameter 'dimm' (did you mean 'dim'?); it has dim, p, q, "),
        ("progress=1", "has no parameter 'progress'"),
        ("dim", "'dim' sets nothing; write name=value, as in dim=8"),
    ],
)
def test_mistakes_say_what_may_be_given(text, message):
    with pytest.raises(ParameterError) as error:
        parse_settings(Walker, [text])
    assert message in str(error.value)


def test_a_setting_given_twice_is_refused():
    with pytest.raises(ParameterError, match="dim is given twice"):
        parse_settings(Walker, ["dim=1", "dim=2"])


def test_a_grid_is_a_list_of_values():
    assert parse_grid(Walker, ["dim=1,2", "pair=1,2;3,4"]) == {"dim": [1, 2], "pair": [(1.0, 2.0), (3.0, 4.0)]}


def test_what_the_docstring_says_is_found():
    found = parameters(Walker)
    assert list(found) == ["dim", "p", "q", "kind", "sizes", "weights", "pair", "loud", "name", "file"]
    assert (found["dim"].about, found["q"].about, found["name"].about) == ("width.", "return and in-out.", "")
    assert summary(Walker) == "Walks about.\n\nIt does little else."


@pytest.mark.parametrize("name", METHODS)
def test_every_parameter_of_a_method_can_be_typed(name):
    assert METHODS[name]().get_params().keys() - parameters(METHODS[name]).keys() <= {"progress"}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_reads_its_own_defaults(name):
    """What is shown as an example can be typed, and is the default where there is one."""
    for parameter in parameters(METHODS[name]).values():
        value = parameter.parse(parameter.example())
        assert parameter.default is None or value == parameter.default
