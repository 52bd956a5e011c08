import warnings

import numpy as np
import pytest

from neural_brane.errors import GraphError
from neural_brane.graph.nodes import NodeData, attributes_of

DATA = NodeData([{"age": np.int64(31), "town": "x"}, {"age": None, "town": np.str_("y")}, {"town": "x"}], "graph 'g'")


def test_numpy_values_and_missing_values_become_plain():
    matrix, names, encoder = attributes_of(DATA, ["town", "age"])
    assert names.tolist() == ["town=x", "town=y", "age=31"]
    assert matrix.toarray().tolist() == [[1, 0, 1], [0, 1, 0], [1, 0, 0]]
    assert encoder.names.tolist() == names.tolist()


def test_keys_that_no_node_has_are_refused():
    with pytest.raises(GraphError, match=r"node.*'g'.*'club'.*'age'"):
        attributes_of(DATA, ["club"])


def test_only_unused_data_gives_a_warning():
    with pytest.warns(UserWarning, match=r"nodes.*'g'.*'age'"):
        DATA.warn_unused({"town"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        DATA.warn_unused({"town", "age"})
