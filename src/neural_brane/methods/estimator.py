"""An estimator as scikit-learn knows it (get_params, set_params, clone), without importing it: a GPU needs no more."""

import inspect
from typing import Any, Self

from neural_brane.errors import ParameterError


class Estimator:
    """An object whose keyword arguments are its parameters, each stored unchanged under its own name."""

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        signature = inspect.signature(cls.__init__)
        return {name: parameter.default for name, parameter in signature.parameters.items() if name != "self"}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every parameter's value as given."""
        return {name: getattr(self, name) for name in sorted(self._defaults())}

    def set_params(self, **parameters: Any) -> Self:
        """Change some parameters. Returns self."""
        known = self._defaults()
        for name, value in parameters.items():
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        changed = {name: value for name, value in self.get_params().items() if value != self._defaults()[name]}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks of an estimator in a pipeline or a search: it is there to ask."""
        from sklearn.base import BaseEstimator

        return BaseEstimator.__sklearn_tags__(self)
