"""`read_graph` refuses missing files and folders."""

import re

import pytest

from neural_brane.errors import GraphError
from neural_brane.files.graphs.formats import read_graph


@pytest.mark.parametrize("name", ["g.txt", "g.npz"])
def test_missing_files_and_folders(tmp_path, name):
    with pytest.raises(GraphError, match=rf"{re.escape(name)}: there is no such file"):
        read_graph(tmp_path / name)
    (tmp_path / name).mkdir()
    with pytest.raises(GraphError, match=rf"{re.escape(name)}: this is a folder"):
        read_graph(tmp_path / name)
