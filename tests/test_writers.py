import subprocess
import sys

import pytest

from neural_brane import writers


def test_a_graph_finds_its_writer_though_nothing_of_io_was_imported(tmp_path):
    code = (
        "import sys; from neural_brane.graph import AttributedGraph; assert 'neural_brane.io' not in sys.modules;"
        "AttributedGraph.from_edges([(0, 1)]).save(sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "g.gml")], check=True)
    assert (tmp_path / "g.gml").read_text().startswith("graph [")


def test_without_a_writer_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setattr(writers, "_find_graph_writer", None)
    with pytest.raises(RuntimeError, match="no writer of graphs is registered; import neural_brane first"):
        writers.write(None, "g.gml")
