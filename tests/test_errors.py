import inspect
import pickle
import subprocess
import sys

import pytest
import sklearn.exceptions

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
    [
        ("GraphError", ValueError),
        ("KindError", TypeError),
        ("DatasetError", ValueError),
        ("ShardError", ValueError),
        ("EmbeddingError", ValueError),
        ("ParameterError", ValueError),
        ("NotFittedError", AttributeError),
        ("DependencyError", ImportError),
    ],
)
def test_some_errors_are_also_builtin_errors(error, builtin):
    assert issubclass(CLASSES[error], builtin)


def test_not_fitted_is_scikit_learns_error_too_and_can_be_pickled():
    error = errors.not_fitted("call fit first")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301
    for one in (error, again):
        assert isinstance(one, errors.NotFittedError)
        assert isinstance(one, sklearn.exceptions.NotFittedError)
        assert str(one) == "call fit first"


def test_importing_errors_does_not_import_scikit_learn():
    code = "import sys, neural_brane.errors, neural_brane; assert not {'numpy', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
