from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.cli.explore import WELL_KNOWN
from neural_brane.embedding import Embedding
from neural_brane.files import datasets


def test_the_demo_shows_neighbours_and_scores_and_writes_both_files(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--output", str(tmp_path / "demo"), "--epochs", "2"])
    assert result.exit_code == 0, result.stderr
    for name in WELL_KNOWN:
        assert any(line.split()[:1] == [name] for line in result.stdout.splitlines())
    scores = [line for line in result.stdout.splitlines() if line.count("±") == 3]
    assert [line.split("  ")[0].strip() for line in scores] == [
        "neural-brane",
        "joint SVD",
        "attributes alone",
        "DeepWalk",
    ]
    assert "neural-brane predicts these topics best" in result.stdout
    assert "brane explore" in result.stdout.splitlines()[-1]
    graph = datasets.load("stdlib")
    written = tmp_path / "demo"
    assert sorted(path.name for path in written.iterdir()) == [
        "map.html",
        "stdlib.npz",
        "stdlib.npz.tsne.npz",
        "stdlib.png",
    ]
    assert Embedding.load(written / "stdlib.npz").ids.tolist() == graph.ids.tolist()
    assert (written / "stdlib.png").read_bytes().startswith(b"\x89PNG")


def test_the_well_known_modules_are_in_the_graph():
    ids = datasets.load("stdlib").ids
    assert set(WELL_KNOWN) <= set(ids.tolist())
