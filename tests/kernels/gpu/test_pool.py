import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")
gpu = pytest.importorskip("neural_brane.kernels.gpu")
tl = pytest.importorskip("triton.language")
pool = pytest.importorskip("neural_brane.kernels.gpu.pool")
pack, unpack = pool.pack, pool.unpack


@triton.jit
def round_trip(values, rows, keys, values_again, rows_again, COUNT: tl.constexpr):
    at = tl.arange(0, COUNT)
    key = pack(tl.load(values + at), tl.load(rows + at))
    tl.store(keys + at, key)
    value, row = unpack(key)
    tl.store(values_again + at, value)
    tl.store(rows_again + at, row)


def test_packed_numbers_are_in_order_and_come_back():
    """A larger number has a larger key and, of equal numbers, the smaller row."""
    values = torch.tensor([-torch.inf, -2.5, -1e-30, 0.0, 1e-30, 3.0, 3.0, torch.inf], device=gpu.DEVICE)
    rows = torch.tensor([2**31 - 1, 5, 0, 7, 1, 9, 4, 0], dtype=torch.int32, device=gpu.DEVICE)
    keys = torch.zeros(8, dtype=torch.int64, device=gpu.DEVICE)
    values_again, rows_again = torch.zeros_like(values), torch.zeros_like(rows)
    round_trip[1,](values, rows, keys, values_again, rows_again, COUNT=8)
    assert keys.tolist() == sorted(keys.tolist())
    assert len(set(keys.tolist())) == 8
    assert (values_again == values).all()
    assert (rows_again == rows).all()
