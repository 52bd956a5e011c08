import pytest

from neural_brane.errors import ParameterError

gpu = pytest.importorskip("neural_brane.kernels.gpu")


def test_tables_that_do_not_fit_are_refused_with_both_numbers():
    sizes = {"dim": 150, "hidden": 150, "batch": 100, "free": 10**9}
    with pytest.raises(ParameterError, match=r"needs 2,2\d\d,\d\d\d,\d\d\d bytes.* 1,000,000,000 are free; lower"):
        gpu.require_memory(tables=10**9, graph=10**9, **sizes)
    gpu.require_memory(tables=10**8, graph=10**8, **sizes)
