import tomllib

from typer.testing import CliRunner

from neural_brane.cli.app import app


def tune(*arguments):
    return CliRunner().invoke(app, ["tune", *arguments, "--jobs", "1"])


def test_a_search_prints_a_table_and_the_lines_to_keep_and_can_be_repeated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = tune("attributes", "stdlib", "--grid", "dim=2,8")
    assert first.exit_code == 0, first.stderr
    table, _, lines = first.stdout.partition("experiments/tuned.toml:")
    assert "validation Macro-F1" in table
    entry = tomllib.loads(lines)["stdlib"]["attributes"]
    assert entry["parameters"] == {"dim": 8}
    assert (entry["candidates"], entry["runs"]) == (2, 3)
    assert len(entry["seen"]) == 16
    assert f"{entry['validation']:.4f} ±" in table
    title = first.stderr.splitlines()[0]
    assert all(word in title for word in ("attributes on stdlib", "2 candidates", "tune-attributes-stdlib"))
    assert [path.name for path in tmp_path.iterdir()] == ["tune-attributes-stdlib"]
    for seed in range(3):
        assert len(list(tmp_path.glob(f"tune-attributes-stdlib/stdlib-attributes-{seed}-*.json"))) == 2
    assert tune("attributes", "stdlib", "--grid", "dim=2,8").stdout == first.stdout


def test_a_parameter_that_is_set_is_not_searched(tmp_path):
    result = tune(
        "neural-brane", "stdlib", "--grid", "l2=5e-5", "--set", "learning_rate=0.5", "--set", "epochs=1",
        "--set", "batches_per_epoch=20", "--set", "dim=4", "-o", str(tmp_path),
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    expected = {"learning_rate": 0.5, "epochs": 1, "batches_per_epoch": 20, "dim": 4, "l2": 5e-5}
    entry = tomllib.loads(result.stdout.partition("tuned.toml:")[2])["stdlib"]["neural-brane"]
    assert entry["parameters"] == expected


def test_mistakes_are_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "--grid dim=" in tune("attributes", "stdlib").stderr
    assert "method 'magic' is unknown" in tune("magic", "stdlib").stderr
    both = tune("attributes", "stdlib", "--grid", "dim=1,2", "--set", "dim=3")
    assert "dim is given" in both.stderr


def test_a_search_in_which_no_training_succeeds_says_why(tmp_path):
    result = tune(
        "neural-brane", "stdlib", "--grid", "learning_rate=1e30", "--grid", "l2=0", "--set", "epochs=1",
        "--set", "batches_per_epoch=20", "--set", "dim=4", "-o", str(tmp_path),
    )  # fmt: skip
    assert result.exit_code == 2
    assert "training diverged in epoch 1" in result.stderr
    assert list(tmp_path.iterdir()) == []
