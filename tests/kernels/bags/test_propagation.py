import numpy as np
import pytest
from scipy import sparse

from neural_brane.kernels import cpu
from neural_brane.kernels.bags import Steps, Trained, propagate, propagate_reference, ranked
from neural_brane.kernels.model import padded, zeros
from neural_brane.methods.maps import bags_of, random_table


def make_case(width=5, nodes=40, attributes=15):
    """Links with weights, attributes with amounts, some of them negative; every node has both."""
    rng = np.random.default_rng(0)
    links = sparse.random_array((nodes, nodes), density=0.2, rng=rng, dtype=np.float32) + sparse.eye_array(nodes, k=1)
    links = sparse.csr_array((links + links.T).astype(np.float32))
    links.setdiag(0)
    links.eliminate_zeros()
    own = sparse.csr_array(rng.normal(size=(nodes, attributes)) * (rng.random((nodes, attributes)) < 0.3))
    own = sparse.csr_array((own + sparse.eye_array(nodes, attributes)).astype(np.float32))
    own[own.sum(axis=1) == 0, 0] = 1.0
    table = random_table(attributes, width, rng)
    state = Trained(table, zeros(*table.shape), zeros(*table.shape))
    return state, bags_of(links, own), rng.permutation(nodes), rng.integers(0, nodes, nodes), (links, own)


def dense(links, own):
    """The matrices that make reconstructions and own vectors of the table."""
    own, links = own.toarray().astype(np.float64), links.toarray().astype(np.float64)
    sizes = np.abs(own).sum(axis=1, keepdims=True)
    return links @ own / (links @ sizes), own / sizes


@pytest.mark.parametrize("width", [1, 5, 40])
@pytest.mark.parametrize("margin", [0.05, 3.0])
def test_training_follows_the_reference(width, margin):
    state, bags, nodes, others, matrices = make_case(width)
    slow, before, steps = Trained(*(part.astype(np.float64) for part in state)), state.table.copy(), Steps(0.01, 7, 16)
    expected = propagate_reference(slow, dense(*matrices), nodes, others, margin, steps)
    losses = propagate(state, bags, nodes, others, margin, steps)
    assert np.abs(state.table - before).max() > 0.01
    np.testing.assert_allclose(losses, expected, rtol=1e-4, atol=1e-5)
    for fast, right in zip(state, slow, strict=True):
        np.testing.assert_allclose(fast, right, rtol=2e-3, atol=2e-5)
    assert not state.table[:, width:].any()


def test_threads_do_not_change_a_bit():
    one, both = make_case(40), make_case(40)
    with cpu.threads(1):
        first = propagate(*one[:4], 1.0, Steps(0.01, 0, 16))
    second = propagate(*both[:4], 1.0, Steps(0.01, 0, 16))
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
    """PyTorch's own, on the gradients that it finds itself."""
    torch = pytest.importorskip("torch")
    state, bags, nodes, others, matrices = make_case()
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
    propagate(state, bags, nodes, others, 1.0, Steps(0.01, 0, 10))
    np.testing.assert_allclose(state.table[:, :5], table.detach().numpy()[:, :5], atol=1e-4)
    assert padded(5) == state.table.shape[1]
