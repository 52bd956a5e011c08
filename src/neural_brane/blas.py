"""BLAS on one thread, for as long as anyone needs it.

On more threads the order of BLAS's sums, and so their last bits, depends on their number. The limit mostly belongs to
the whole process: were every caller to set it and put back what it found, two callers in two threads could each find,
and leave behind, the other's limit. So callers are counted: the first one sets the limit, the last one takes it away.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib.util import find_spec
from threading import Lock
from typing import Any


def one_blas_thread() -> AbstractContextManager[None]:
    """Run BLAS and OpenMP, which BLAS or scikit-learn may use, on one thread inside the block."""
    if find_spec("threadpoolctl") is None:  # as where PyTorch trains on a GPU, and no bits are promised
        return nullcontext()
    return _limited()


@contextmanager
def _limited() -> Iterator[None]:
    from threadpoolctl import threadpool_limits

    _callers.enter()
    try:
        with threadpool_limits(1, "openmp"):  # every thread has its own
            yield
    finally:
        _callers.leave()


class _Callers:
    """Those who need BLAS on one thread, and the limit while there are any."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.count = 0
        self.limit: Any = None

    def enter(self) -> None:
        from threadpoolctl import threadpool_limits

        with self.lock:
            if self.count == 0:
                self.limit = threadpool_limits(1, "blas")
            self.count += 1

    def leave(self) -> None:
        with self.lock:
            self.count -= 1
            if self.count == 0:
                _release_control()
                self.limit.restore_original_limits()
                _release_control()

    def forget_lock(self) -> None:
        """In a forked process: another thread of the parent may have held it."""
        self.lock = Lock()


def _release_control() -> None:
    """Let any thread change the limit: newer versions of threadpoolctl heed only the one that set it."""
    import threadpoolctl

    controller = getattr(threadpoolctl, "OpenBLASController", None)
    if controller is not None and hasattr(controller, "clear_controlling_thread"):
        controller.clear_controlling_thread(force=True)


_callers = _Callers()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_callers.forget_lock)
