"""What is done where training diverges: it stops, and says which of the settings in force to change."""

from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from neural_brane.checkpoint import is_finite
from neural_brane.errors import ParameterError


def require_finite(arrays: Mapping[str, np.ndarray], where: str, advice: str = "", **lower: Any) -> None:
    """Refuse to go on where some numbers are none.

    where: the step or epoch. lower: parameters that a lower value would mend, as they are in force. advice: what else.
    """
    if all(is_finite(array) for array in arrays.values()):
        return
    told = [name for name, array in arrays.items() if not is_finite(array)]
    diverged(f"in {where}: {' and '.join(told)} no longer hold numbers", advice, **lower)


def diverged(what: str, advice: str = "", **lower: Any) -> NoReturn:
    """Raise the error of a training that diverged."""
    changes = [f"lower {name}={value:g}" for name, value in lower.items()] + ([advice] if advice else [])
    raise ParameterError(f"training diverged {what}; {' or '.join(changes)}")
