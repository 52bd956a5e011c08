import numpy as np
import pytest

from neural_brane.experiments.reproduce.plan import _numbers, macro_f1

SYSTEMS = {
    "deepwalk", "line", "node2vec", "nnmf", "deepwalk+nnmf", "graphsage", "pte", "tadw", "aane", "graph2gauss",
    "neural-brane",
}  # fmt: skip


def test_every_cell_of_the_table_is_there():
    table = dict(_numbers()["macro_f1"])
    assert table.pop("train") == [0.3, 0.5, 0.7]
    assert set(table) == {"citeseer", "caltech36", "reed98", "arnetminer-15753"}
    for dataset, rows in table.items():
        assert set(rows) == SYSTEMS - ({"graphsage"} if dataset == "arnetminer-15753" else set())
        for scores in rows.values():
            assert len(scores) == 3
            assert 0.4 < min(scores) <= max(scores) < 0.95
            assert scores == sorted(scores) or np.ptp(scores[:2]) < 0.001  # one row falls, by 0.0004


@pytest.mark.parametrize(
    ("method", "dataset", "cells"),
    [
        ("graph2gauss", "reed98", (0.7515, 0.7772, 0.7925)),
        ("neural-brane", "caltech36", (0.9219, 0.9285, 0.9456)),
        ("deepwalk+nnmf", "citeseer", (0.5185, 0.5598, 0.5780)),
        ("graphsage", "arnetminer-15753", None),
        ("attributes", "citeseer", None),
        ("tadw", "arnetminer", None),
    ],
)
def test_cells_are_found_by_method_and_dataset(method, dataset, cells):
    assert macro_f1(method, dataset) == cells
