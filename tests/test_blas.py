"""Test that all callers share the limit of one BLAS thread, and that it ends with the last caller."""

from threading import Event, Thread

import numpy as np
from threadpoolctl import threadpool_info, threadpool_limits

from neural_brane.kernels.threads import one_blas_thread


def blas_threads() -> set[int]:
    """Return the threads of BLAS libraries with one limit per process; OpenMP (in faiss's BLAS) has one per thread."""
    np.ones((2, 2)) @ np.ones((2, 2))
    blas = [one for one in threadpool_info() if one["user_api"] == "blas"]
    return {one["num_threads"] for one in blas if one["threading_layer"] != "openmp"}


def test_the_last_to_leave_takes_the_limit_away():
    """The second thread enters before the first one leaves, and leaves after it."""
    inside, leave = Event(), Event()

    def stay() -> None:
        with one_blas_thread():
            inside.set()
            leave.wait(60)

    with threadpool_limits(2, "blas"):
        second = Thread(target=stay)
        with one_blas_thread():
            second.start()
            assert inside.wait(60)
        assert blas_threads() == {1}
        leave.set()
        second.join(60)
        assert blas_threads() == {2}


def test_an_error_takes_the_limit_away():
    with threadpool_limits(2, "blas"):
        try:
            with one_blas_thread():
                assert blas_threads() == {1}
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        assert blas_threads() == {2}
