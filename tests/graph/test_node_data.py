import warnings

import numpy as np
import pytest

from neural_brane.errors import GraphError
from neural_brane.graph.nodes import NodeData, attributes_of

DATA = NodeData([{"age": np.int64(31), "town": "x"}, {"age": None, "town": np.str_("y")}, {"town": "x"}], "graph 'g'")


def test_values_of_numpy_and_missing_ones_are_plain():
    matrix, names, encoder = attributes_of(DATA, ["town", "age"])
    assert names.tolist() == ["town=x", "town=y", "age=31"]
    assert matrix.toarray().tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert encoder.names.tolist() == names.tolist()


def test_keys_that_no_node_has_are_refused():
    with pytest.raises(GraphError, match=r"node.*'g'.*'club'.*'age'"):
        attributes_of(DATA, ["club"])


def test_data_that_is_not_used_is_told_and_used_data_is_not():
    with pytest.warns(UserWarning, match=r"nodes.*'g'.*'age'"):
        DATA.warn_unused({"town"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DATA.warn_unused({"town", "age"})
