import numpy as np
import pytest
from scipy import sparse

from neural_brane.kernels import bags, cpu
from neural_brane.kernels.bags import Steps, Trained
from neural_brane.kernels.model import padded, rows_of

NODES, ATTRIBUTES, NEGATIVES = 20, 12, 3


def make_case(dim=7, count=30):
    """Tables that are not zero, attributes with amounts, and targets of which some are none."""
    rng = np.random.default_rng(0)
    tables = bags.empty_tables(ATTRIBUTES, NODES, dim)
    half = dim - dim // 2
    tables.maps[:, :half] = rng.normal(size=(ATTRIBUTES, half))
    tables.contexts[:, :half] = rng.normal(size=(NODES, half))
    tables.contexts[:, padded(half) : padded(half) + dim - half] = rng.normal(size=(NODES, dim - half))
    own = rng.random((NODES, ATTRIBUTES)) * (rng.random((NODES, ATTRIBUTES)) < 0.4)
    sources, targets = rng.integers(0, NODES, count), rng.integers(-1, NODES, (count, 3, 1 + NEGATIVES))
    targets[::5, 1:] = -1
    return tables, sparse.csr_array(own.astype(np.float32)), sources, targets.astype(np.int32)


def plain(tables, dim):
    """Maps and contexts as the definition has them, without spare columns."""
    half, middle = dim - dim // 2, tables.maps.shape[1]
    contexts = np.hstack([tables.contexts[:, :half], tables.contexts[:, middle : middle + dim - half]])
    return tables.maps[:, :half].astype(np.float64), contexts.astype(np.float64)


@pytest.mark.parametrize("dim", [1, 2, 7, 40])
def test_training_follows_the_reference(dim):
    tables, own, sources, targets = make_case(dim)
    slow = plain(tables, dim)
    state = [np.zeros_like(part) for part in (*slow, *slow)]
    before, dense, batch, step = slow[0].copy(), own.toarray().astype(np.float64), 8, 4
    expected = []
    for start in range(0, len(sources), batch):
        slopes, seen = [np.zeros_like(part) for part in slow], [set(), set()]
        for k in range(start, min(start + batch, len(sources))):
            parts = targets[k, :, 0], targets[k, :, 1:]
            hits, against = ([one for one in part.ravel() if one >= 0] for part in parts)
            loss, *found = bags.profile_loss(dense, *slow, sources[k], hits, against)
            expected.append(loss / max(len(hits) + len(against), 1))
            slopes = [total + one for total, one in zip(slopes, found, strict=True)]
            seen[0] |= set(own[[sources[k]]].indices.tolist())
            seen[1] |= {*hits, *against}
        step += 1
        rate = bags.corrected(0.02, step)
        for at in range(2):
            trained = Trained(slow[at], state[at], state[at + 2])
            bags.descend_reference(trained, slopes[at], sorted(seen[at]), rate)
    losses = bags.train(tables, rows_of(own), sources, targets, dim, Steps(0.02, 4, batch))
    assert np.abs(slow[0] - before).max() > 0.02
    np.testing.assert_allclose(losses, expected, rtol=1e-3, atol=1e-4)
    for fast, right in zip(plain(tables, dim), slow, strict=True):
        np.testing.assert_allclose(fast, right, atol=2e-3)
    half = dim - dim // 2
    assert not tables.maps[:, half:].any()
    assert not tables.contexts[:, half : padded(half)].any()


def test_threads_do_not_change_a_bit():
    one, both = make_case(40), make_case(40)
    steps = Steps(0.02, 0, 8)
    with cpu.threads(1):
        first = bags.train(one[0], rows_of(one[1]), *one[2:], 40, steps)
    second = bags.train(both[0], rows_of(both[1]), *both[2:], 40, steps)
    np.testing.assert_array_equal(first, second)
    for part, other in zip(one[0], both[0], strict=True):
        np.testing.assert_array_equal(part, other)


@pytest.mark.parametrize("dim", [5, 6])
def test_gradients_are_finite_differences(dim):
    rng = np.random.default_rng(2)
    own = rng.random((4, 3))
    parts = [rng.normal(size=(3, dim - dim // 2)), rng.normal(size=(6, dim))]
    case = 1, [0, 5, 5], [2, 3]
    _, *slopes = bags.profile_loss(own, *parts, *case)
    for part, slope in zip(parts, slopes, strict=True):
        for place in np.ndindex(part.shape):
            before, ends = part[place], []
            for step in (1e-6, -1e-6):
                part[place] = before + step
                ends.append(bags.profile_loss(own, *parts, *case)[0])
            part[place] = before
            assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)
