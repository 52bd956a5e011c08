import threading

import numpy as np

from neural_brane.kernels.threads import by_slabs, map_threads


def test_results_come_in_the_order_of_the_items():
    assert list(map_threads(lambda item: item**2, range(20), 2)) == [item**2 for item in range(20)]
    assert list(map_threads(str, [], None)) == []


def test_one_thread_is_this_one():
    assert set(map_threads(lambda _: threading.get_ident(), range(5), 1)) == {threading.get_ident()}


def test_slabs_make_the_whole_product(matrix):
    table = np.random.default_rng(1).random((70, 75))
    for threads in (1, 2):
        found = by_slabs(lambda part: matrix @ part, table, threads=threads)
        np.testing.assert_allclose(found, matrix @ table, rtol=1e-12)
    assert by_slabs(lambda part: matrix @ part, table[:, :0]).shape == (90, 0)
