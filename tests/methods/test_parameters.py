"""Declared parameters: accepted values, parsed texts, and the generated docstring."""

import inspect
from pathlib import Path

import numpy as np
import pytest

from neural_brane.errors import ParameterError
from neural_brane.methods.parameters import Parametrised, choice, flag, number, numbers, shared, whole


class Walker(Parametrised):
    """Walks about.

    It does little else.

    Examples
    --------
    >>> 1 + 1
    2
    """

    title = "walker"

    dim: int = shared("dim", default=8)
    p: float | None = number("Return.", default=None, above=0)
    kind: str = choice("Which.", default="slow", options=("slow", "quick"))
    hops: int = choice("How far.", default=1, options=(1, 2, 3))
    weights: tuple[float, ...] = numbers("Of hops.", default=(1.0, 0.5))
    loud: bool = flag("Whether to sing.", default=False)
    rests: int = whole("Pauses.", default=3, least=0)
    seed: int | None = shared("seed", default=None)
    checkpoint: str | Path | None = shared("checkpoint", default=None)


class Runner(Walker):
    """Runs."""

    title = "runner"

    dim: int = shared("dim", default=4, about="Width of a runner.")
    speed: float = number("How fast.", default=2.5, least=0)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("dim=16", 16),
        ("p=none", None),
        ("p=1e-3", 0.001),
        ("kind=Quick", "quick"),
        ("hops=2", 2),
        ("weights=1,0.5", (1.0, 0.5)),
        ("weights=(2,)", (2.0,)),
        ("loud=yes", True),
        ("loud=False", False),
        ("rests=0", 0),
        ("checkpoint=a=b.txt", "a=b.txt"),
    ],
)
def test_text_becomes_what_was_declared(text, value):
    name, _, written = text.partition("=")
    parsed = Walker.parameter(name).parse(written)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dim=2.5", "dim=2.5: give a whole number from 1, as in dim=8"),
        ("dim=none", "dim=none: give a whole number from 1, as in dim=8"),
        ("p=big", "p=big: give a number above 0, or None, as in p=0.1"),
        ("p=nan", "p=nan: give a number above 0, or None, as in p=0.1"),
        ("kind=fast", "kind=fast: give one of slow, quick, as in kind=slow"),
        ("weights=a", "weights=a: give numbers from 0, separated by commas, not all 0, as in weights=1.0,0.5"),
        ("loud=2", "loud=2: give true or false, as in loud=false"),
        ("seed=-1", "seed=-1: give a whole number from 0, or None, as in seed=1"),
    ],
)
def test_a_text_that_means_nothing_is_answered_with_what_may_be_given(text, message):
    name, _, written = text.partition("=")
    with pytest.raises(ParameterError) as error:
        Walker.parameter(name).parse(written)
    assert str(error.value) == message


def test_a_name_that_is_not_there_is_answered_with_the_likeliest():
    with pytest.raises(ParameterError, match=r"method 'walker'.*'dimm'"):
        Walker.parameter("dimm")
    with pytest.raises(ParameterError, match="has no parameter 'speed'"):
        Walker().set_params(speed=1.0)


def test_values_in_force_are_pythons_own():
    given = Walker(
        dim=np.int32(5), p=np.float32(0.5), loud=np.True_, weights=np.array([1, 2]), checkpoint=Path("a")
    )  # fmt: skip
    values = given.parameters_in_force()
    assert values["dim"] == 5
    assert [type(values[name]) for name in ("dim", "p", "loud", "weights", "checkpoint")] == [
        int, float, bool, tuple, str,
    ]  # fmt: skip
    assert type(given.dim) is np.int32, "what was given is kept as it is"


def test_a_subclass_has_its_bases_parameters_and_its_own():
    assert list(Runner.parameters()) == [
        "dim", "p", "kind", "hops", "weights", "loud", "rests", "speed", "seed", "checkpoint",
    ]  # fmt: skip
    assert (Runner().dim, Runner().speed, Walker().dim) == (4, 2.5, 8)
    assert Runner.parameter("dim").about == "Width of a runner."


def test_what_changes_no_vector_does_not_decide():
    decides = Walker(seed=3, checkpoint="a").deciding_parameters()
    assert "seed" not in decides
    assert "checkpoint" not in decides
    assert decides["kind"] == "slow"


def test_the_docstring_lists_the_parameters_before_the_examples():
    text = inspect.getdoc(Walker)
    assert text.startswith("Walks about.\n\nIt does little else.\n\nParameters\n----------\ndim : ")
    assert "\np : a number above 0, or None, default None\n    Return.\n" in text
    assert text.index("Parameters\n") < text.index("Examples\n")
    assert "speed : a number from 0, default 2.5\n    How fast." in inspect.getdoc(Runner)


def test_the_representation_shows_what_was_changed():
    assert repr(Walker(p=0.5, loud=True)) == "Walker(p=0.5, loud=True)"
    assert repr(Walker()) == "Walker()"


def test_parameters_are_keyword_arguments():
    with pytest.raises(TypeError):
        Walker(8)
    with pytest.raises(TypeError, match="length"):
        Walker(length=3)
