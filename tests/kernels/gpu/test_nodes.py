from itertools import chain

import numpy as np
import pytest

torch = pytest.importorskip("torch")
gpu = pytest.importorskip("neural_brane.kernels.gpu")


def test_a_plan_by_nodes_has_every_slot_in_a_piece_of_its_node(make_case, seed):
    from neural_brane.kernels.gpu.pool import NodePlan

    case = make_case(steps=2, batch=40, seed=seed)
    bags = gpu.place(case.attribute_bags), gpu.place(case.neighbour_bags)
    plan = NodePlan(bags, tuple(map(len, case.model[:2])), 2, 120, piece=3)
    plan.fill(torch.from_numpy(case.triplets).to(gpu.DEVICE), segments=False)
    for step, nodes in enumerate(case.triplets.reshape(2, 120)):
        order, pieces, bounds = (array[step].tolist() for array in (plan.order, plan.pieces, plan.bounds))
        for node in range(plan.vectors):
            own = [order[pieces[p] : pieces[p + 1]] for p in range(bounds[node], bounds[node + 1])]
            assert list(chain(*own)) == np.flatnonzero(nodes == node).tolist()
            assert all(0 < len(piece) <= 3 for piece in own)
        met = np.isin(np.arange(plan.vectors), nodes)
        for side, bag in enumerate((case.attribute_bags, case.neighbour_bags)):
            assert (plan.sizes[step, side].cpu().numpy() == met * np.diff(bag.indptr)).all()
