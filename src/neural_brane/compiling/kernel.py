"""Functions that Numba compiles: their code is kept where that is possible, parallel ones run on safe threads."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numba

from neural_brane.compiling.kept import keep
from neural_brane.compiling.layer import in_turn


def njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`numba.njit`, with or without options. Compiled code is kept for the next process.

    A function with parallel=True may be called from Python alone, in any thread.
    """
    if function is None:
        return partial(njit, **options)
    kernel = numba.njit(**options)(function)
    keep(kernel)
    return _parallel(kernel) if options.get("parallel") else kernel


def _parallel(kernel: Any) -> Callable[..., Any]:
    @wraps(kernel)
    def call(*arguments: Any) -> Any:
        with in_turn():
            return kernel(*arguments)

    return call
