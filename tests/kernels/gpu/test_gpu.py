"""Test the functions of `kernels/gpu/__init__.py`."""

import numpy as np
import pytest

from neural_brane.kernels import reference
from neural_brane.kernels.model import MAX, MEAN, SUM

gpu = pytest.importorskip("neural_brane.kernels.gpu")


@pytest.mark.parametrize(("d1", "d2"), [(7, 12), (0, 5), (5, 0)])
@pytest.mark.parametrize(("pooling", "zero_floor"), [(MAX, False), (MAX, True), (SUM, False), (MEAN, False)])
def test_embed_and_hide_follow_the_reference(make_case, settings, poisoned, seed, pooling, zero_floor, d1, d2):
    case = make_case(d1=d1, d2=d2, seed=seed)
    settings = settings._replace(pooling=pooling, zero_floor=zero_floor, attribute_dim=d1)
    nodes = np.arange(40)
    pooled = gpu.embed(*map(gpu.place, case[:3]), nodes, settings, allocate=poisoned).cpu().numpy()
    np.testing.assert_allclose(pooled, reference.embed(*case[:3], nodes, settings), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gpu.hide(case.model, pooled), reference.hide(case.model, pooled), rtol=1e-5, atol=1e-6)


def test_unpadded_tables_are_padded_on_the_way(make_case, settings, assert_follows, batch, seed):
    case = make_case(steps=2, batch=batch, seed=seed)
    tables = case.model.attribute_table[:, :7].copy(), case.model.neighbour_table[:, :12].copy()
    bare = case._replace(model=case.model._replace(attribute_table=tables[0], neighbour_table=tables[1]))
    assert_follows(bare, settings._replace(triplet_scale=1 / batch))
