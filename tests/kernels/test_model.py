from neural_brane.kernels.model import padded, zeros


def test_tables_start_on_a_cache_line():
    assert zeros(3, 16).ctypes.data % 64 == 0
    assert [padded(width) for width in (0, 1, 16, 75)] == [0, 16, 16, 80]
