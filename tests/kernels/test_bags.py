"""Compare the trainings of pooled rows with their definitions in NumPy."""

import numpy as np
import pytest
from scipy import sparse

from neural_brane.kernels import bags, cpu
from neural_brane.kernels.bags import AdamTable, StepRange, propagate
from neural_brane.kernels.model import padded, rows_of, zeros
from neural_brane.methods.ep import bags_of, random_table


def descend_reference(trained: AdamTable, gradient, touched, rate: float):
    """Take a step of Adam for the touched rows; the other rows and their running means stay unchanged."""
    table, mean, square = trained
    mean[touched] = bags.MEAN_DECAY * mean[touched] + (1 - bags.MEAN_DECAY) * gradient[touched]
    square[touched] = bags.SQUARE_DECAY * square[touched] + (1 - bags.SQUARE_DECAY) * gradient[touched] ** 2
    table[touched] -= rate * mean[touched] / (np.sqrt(square[touched]) + bags.SMALLEST)


def ranked(around, own, others, margin: float):
    """Return the loss max(0, margin + |around − own| − |around − other|) of every row, and its three gradients."""
    near, far = around - own, around - others
    lengths = [np.linalg.norm(part, axis=1, keepdims=True) for part in (near, far)]
    losses = np.maximum(margin + lengths[0] - lengths[1], 0)
    near, far = (
        np.where(losses > 0, part / np.where(length > 0, length, 1), 0)
        for part, length in zip((near, far), lengths, strict=True)
    )
    return losses[:, 0], (near - far, -near, far)


def propagate_reference(trained: AdamTable, matrices, nodes, others, margin: float, steps: StepRange):
    """Train a table by embedding propagation in place, one step per batch of nodes; return their losses.

    matrices: two dense matrices (nodes, rows of the table) that turn the table into reconstructions and own vectors.
    others: (k,), a contrasting node for each of nodes (k,).
    """
    (around, own), losses, step = matrices, np.empty(len(nodes)), steps.step
    for start in range(0, len(nodes), steps.batch):
        some = slice(start, start + steps.batch)
        shares = np.stack([around[nodes[some]], own[nodes[some]], own[others[some]]])
        around_some, own_some, others_some = shares @ trained.table
        losses[some], slopes = ranked(around_some, own_some, others_some, margin)
        gradient = sum(bag.T @ slope for bag, slope in zip(shares, slopes, strict=True))
        step += 1
        descend_reference(trained, gradient, (shares != 0).any(axis=(0, 1)), bags.corrected(steps.rate, step))
    return losses


def make_propagation(width=5, nodes=40, attributes=15):
    """Make links with weights, and attributes with amounts, some of them negative; every node has both."""
    rng = np.random.default_rng(0)
    links = sparse.random_array((nodes, nodes), density=0.2, rng=rng, dtype=np.float32) + sparse.eye_array(nodes, k=1)
    links = sparse.csr_array((links + links.T).astype(np.float32))
    links.setdiag(0)
    links.eliminate_zeros()
    own = sparse.csr_array(rng.normal(size=(nodes, attributes)) * (rng.random((nodes, attributes)) < 0.3))
    own = sparse.csr_array((own + sparse.eye_array(nodes, attributes)).astype(np.float32))
    own[own.sum(axis=1) == 0, 0] = 1.0
    table = random_table(attributes, width, rng)
    state = AdamTable(table, zeros(*table.shape), zeros(*table.shape))
    return state, bags_of(links, own), rng.permutation(nodes), rng.integers(0, nodes, nodes), (links, own)


def dense(links, own):
    """Return the matrices that turn the table into reconstructions and own vectors."""
    own, links = own.toarray().astype(np.float64), links.toarray().astype(np.float64)
    sizes = np.abs(own).sum(axis=1, keepdims=True)
    return links @ own / (links @ sizes), own / sizes


@pytest.mark.parametrize("width", [1, 5, 40])
@pytest.mark.parametrize("margin", [0.05, 3.0])
def test_propagation_follows_the_reference(width, margin):
    state, made, nodes, others, matrices = make_propagation(width)
    slow, before, steps = (
        AdamTable(*(part.astype(np.float64) for part in state)),
        state.table.copy(),
        StepRange(0.01, 7, 16),
    )
    expected = propagate_reference(slow, dense(*matrices), nodes, others, margin, steps)
    losses = propagate(state, made, nodes, others, margin, steps)
    assert np.abs(state.table - before).max() > 0.01
    np.testing.assert_allclose(losses, expected, rtol=1e-4, atol=1e-5)
    for fast, right in zip(state, slow, strict=True):
        np.testing.assert_allclose(fast, right, rtol=2e-3, atol=2e-5)
    assert not state.table[:, width:].any()


def test_threads_of_propagation_do_not_change_a_bit():
    one, both = make_propagation(40), make_propagation(40)
    with cpu.threads(1):
        first = propagate(*one[:4], 1.0, StepRange(0.01, 0, 16))
    second = propagate(*both[:4], 1.0, StepRange(0.01, 0, 16))
    np.testing.assert_array_equal(first, second)
    for part, other in zip(one[0], both[0], strict=True):
        np.testing.assert_array_equal(part, other)


def test_gradients_of_the_loss_are_finite_differences():
    rng = np.random.default_rng(1)
    parts = list(rng.normal(size=(3, 4, 6)))
    parts[2][3] += 100  # beyond the margin: no loss, no gradient
    losses, slopes = ranked(*parts, 2.0)
    assert losses[3] == 0
    for part, slope in zip(parts, slopes, strict=True):
        for place in np.ndindex(part.shape):
            before = part[place]
            ends = []
            for step in (1e-6, -1e-6):
                part[place] = before + step
                ends.append(ranked(*parts, 2.0)[0].sum())
            part[place] = before
            assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)


def test_steps_are_those_of_sparse_adam():
    """PyTorch computes the gradients and takes the steps."""
    torch = pytest.importorskip("torch")
    state, made, nodes, others, matrices = make_propagation()
    around, own = (sparse.csr_array(part) for part in dense(*matrices))
    table = torch.nn.Parameter(torch.from_numpy(state.table.copy()))
    adam = torch.optim.SparseAdam([table], lr=0.01)

    def pooled(matrix):
        parts = (torch.from_numpy(part) for part in (matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)))
        rows, indptr = parts
        flat = torch.nn.functional.embedding(rows, table, sparse=True) * torch.from_numpy(matrix.data).float()[:, None]
        bag = torch.repeat_interleave(torch.arange(len(indptr) - 1), torch.diff(indptr))
        return torch.zeros(len(indptr) - 1, table.shape[1]).index_add(0, bag, flat)

    for start in range(0, len(nodes), 10):
        some = slice(start, start + 10)
        near = pooled(around[nodes[some]])
        gaps = [(near - pooled(own[part[some]])).norm(dim=1) for part in (nodes, others)]
        adam.zero_grad()
        (1.0 + gaps[0] - gaps[1]).relu().sum().backward()
        adam.step()
    propagate(state, made, nodes, others, 1.0, StepRange(0.01, 0, 10))
    np.testing.assert_allclose(state.table[:, :5], table.detach().numpy()[:, :5], atol=1e-4)
    assert padded(5) == state.table.shape[1]


def fourier(attributes, maps, dim: int):
    """Return the vectors of nodes with these attributes, (nodes, dim): cosines of attributes @ maps, then sines.

    maps: (attributes, dim - dim // 2). The last sine is left out if dim is odd.
    """
    angles = attributes @ maps
    return np.hstack([np.cos(angles), np.sin(angles)])[:, :dim] / np.sqrt(maps.shape[1])


def profile_loss(attributes, maps, contexts, source: int, targets, negatives):
    """Return the loss of one source, whose vector predicts the targets but not the negatives, and its two gradients."""
    dim, half = contexts.shape[1], maps.shape[1]
    vector = fourier(attributes[[source]], maps, dim)[0]
    hits, signs = np.array([*targets, *negatives]), np.repeat([1, -1], [len(targets), len(negatives)])
    scores = contexts[hits] @ vector
    slopes = -signs / (1 + np.exp(signs * scores))
    by_vector = slopes @ contexts[hits]
    angles = attributes[source] @ maps
    by_angle = -np.sin(angles) * by_vector[:half] / np.sqrt(half)
    by_angle[: dim - half] += np.cos(angles[: dim - half]) * by_vector[half:] / np.sqrt(half)
    by_contexts = np.zeros_like(contexts)
    np.add.at(by_contexts, hits, np.outer(slopes, vector))
    return np.logaddexp(0, -signs * scores).sum(), np.outer(attributes[source], by_angle), by_contexts


NODES, ATTRIBUTES, NEGATIVES = 20, 12, 3


def make_case(dim=7, count=30):
    """Make non-zero tables, attributes with amounts, and targets with some empty places."""
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
    """Return maps and contexts without padding columns, as in the definition."""
    half, middle = dim - dim // 2, tables.maps.shape[1]
    contexts = np.hstack([tables.contexts[:, :half], tables.contexts[:, middle : middle + dim - half]])
    return tables.maps[:, :half].astype(np.float64), contexts.astype(np.float64)


@pytest.mark.parametrize("dim", [1, 2, 7, 40])
def test_skip_gram_follows_the_reference(dim):
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
            loss, *found = profile_loss(dense, *slow, sources[k], hits, against)
            expected.append(loss / max(len(hits) + len(against), 1))
            slopes = [total + one for total, one in zip(slopes, found, strict=True)]
            seen[0] |= set(own[[sources[k]]].indices.tolist())
            seen[1] |= {*hits, *against}
        step += 1
        rate = bags.corrected(0.02, step)
        for at in range(2):
            trained = AdamTable(slow[at], state[at], state[at + 2])
            descend_reference(trained, slopes[at], sorted(seen[at]), rate)
    losses = bags.train(tables, rows_of(own), sources, targets, dim, StepRange(0.02, 4, batch))
    assert np.abs(slow[0] - before).max() > 0.02
    np.testing.assert_allclose(losses, expected, rtol=1e-3, atol=1e-4)
    for fast, right in zip(plain(tables, dim), slow, strict=True):
        np.testing.assert_allclose(fast, right, atol=2e-3)
    half = dim - dim // 2
    assert not tables.maps[:, half:].any()
    assert not tables.contexts[:, half : padded(half)].any()


def test_threads_of_skip_gram_do_not_change_a_bit():
    one, both = make_case(40), make_case(40)
    steps = StepRange(0.02, 0, 8)
    with cpu.threads(1):
        first = bags.train(one[0], rows_of(one[1]), *one[2:], 40, steps)
    second = bags.train(both[0], rows_of(both[1]), *both[2:], 40, steps)
    np.testing.assert_array_equal(first, second)
    for part, other in zip(one[0], both[0], strict=True):
        np.testing.assert_array_equal(part, other)


@pytest.mark.parametrize("dim", [5, 6])
def test_gradients_of_skip_gram_are_finite_differences(dim):
    rng = np.random.default_rng(2)
    own = rng.random((4, 3))
    parts = [rng.normal(size=(3, dim - dim // 2)), rng.normal(size=(6, dim))]
    case = 1, [0, 5, 5], [2, 3]
    _, *slopes = profile_loss(own, *parts, *case)
    for part, slope in zip(parts, slopes, strict=True):
        for place in np.ndindex(part.shape):
            before, ends = part[place], []
            for step in (1e-6, -1e-6):
                part[place] = before + step
                ends.append(profile_loss(own, *parts, *case)[0])
            part[place] = before
            assert slope[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)
