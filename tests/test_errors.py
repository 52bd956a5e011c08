import inspect

import pytest

from neural_brane import errors

CLASSES = {
    name: one for name, one in inspect.getmembers(errors, inspect.isclass) if not issubclass(one, Warning)
}  # fmt: skip


@pytest.mark.parametrize("name", CLASSES)
def test_every_error_is_drawn_in_the_tree_and_caught_by_the_base(name):
    assert f" {name} " in errors.__doc__.replace("\n", " ")
    assert issubclass(CLASSES[name], errors.BraneError)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [("ParameterError", ValueError), ("NotFittedError", AttributeError), ("DependencyError", ImportError)],
)
def test_some_errors_are_also_those_of_python(error, builtin):
    assert issubclass(CLASSES[error], builtin)
