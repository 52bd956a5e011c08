"""Examples in docstrings are skipped, with the reason, where the optional package they need is not installed."""

from importlib.util import find_spec

import pytest

# Modules of the GPU cannot be imported without Triton, so their examples are not looked for.
collect_ignore_glob = [] if find_spec("triton") else ["src/neural_brane/kernels/gpu/*", "src/**/*_gpu.py"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the examples of methods whose optional package is absent."""
    examples = [item for item in items if isinstance(item, pytest.DoctestItem)]
    if not examples:  # then no method is imported: the GPU's tests run without Numba and others that methods need
        return
    from neural_brane import METHODS

    for method in METHODS.values():
        if method.extra and find_spec(method.extra) is None:
            skip = pytest.mark.skip(reason=f"{method.title} needs {method.extra}")
            for item in examples:
                if item.name == f"{method.__module__}.{method.__qualname__}":
                    item.add_marker(skip)
