"""The form of a method's output for features, as scikit-learn's `set_output` chooses it: a matrix or a DataFrame."""

import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from neural_brane.errors import ParameterError

if TYPE_CHECKING:
    from neural_brane.methods.fitted import Fitted

FORMS = ("default", "pandas", "polars")


class Output:
    """What scikit-learn asks of a transformer whose output may be a DataFrame."""

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `transform` and `fit_transform` give for a matrix of features. Returns self.

        transform: "default" for a NumPy array, "pandas" or "polars" for a DataFrame; None changes nothing. For a graph
        they give an `Embedding` all the same, which has `to_pandas` and `to_polars`.

        >>> import numpy as np
        >>> from neural_brane import Attributes
        >>> Attributes(dim=2, seed=0).set_output(transform="pandas").fit_transform(np.eye(3)).columns.tolist()
        ['attributes0', 'attributes1']
        """
        if transform is not None and transform not in FORMS:
            raise ParameterError(f"transform={transform!r} makes no sense; give {', '.join(FORMS)} or None")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # the name that `clone` looks for
        return self

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of a vector's numbers: the class's, in small letters, and a number from 0.

        input_features: the names of the attributes learned from, which are checked and have no other effect.
        """
        fitted: Fitted = self._require_fitted()  # type: ignore[attr-defined]
        if input_features is not None:
            _check_names(fitted, np.asarray(input_features, dtype=object))
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{number}" for number in range(fitted.method.dim)], dtype=object)


def in_form(method: Output, source: Any, vectors: np.ndarray) -> Any:
    """The vectors of features in the form chosen for the method or, by `sklearn.set_config`, for all estimators."""
    chosen = vars(method).get("_sklearn_output_config", {}).get("transform")
    if chosen == "default" or (chosen is None and "sklearn" not in sys.modules):
        return vectors
    return _former()(method.get_feature_names_out(), vectors).set_output(transform=chosen).transform(source)


@cache
def _former() -> Any:
    """A transformer of scikit-learn that gives vectors it has: what puts them into a DataFrame is scikit-learn's own.

    Its class is made when it is first needed, because to import scikit-learn takes long.
    """
    from sklearn.base import TransformerMixin

    class Former(TransformerMixin):  # type: ignore[misc, unused-ignore]
        def __init__(self, names: np.ndarray, vectors: np.ndarray):
            self.names, self.vectors = names, vectors

        def transform(self, source: Any) -> np.ndarray:
            return self.vectors

        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
            return self.names

    return Former


def _check_names(fitted: "Fitted", names: np.ndarray) -> None:
    learned = getattr(fitted, "feature_names_in", None)
    if learned is not None and not np.array_equal(learned, names):
        raise ParameterError("input_features is not equal to feature_names_in_; give those, or None")
    if len(names) != fitted.n_features_in:
        raise ParameterError(
            f"input_features should have length equal to number of features ({fitted.n_features_in}), got {len(names)}"
        )
