"""Two real CSV files of packages and their dependencies: each way to read them finds the expected columns."""

import polars as pl
import pytest

from neural_brane import Attributes, PropagatedAttributes, classify
from neural_brane.files.graphs.formats import read_graph
from neural_brane.graph import AttributedGraph

# The relation and the direction of the dependencies are not used.
pytestmark = pytest.mark.filterwarnings("ignore:.*column 'kind' and the direction:neural_brane.errors.ReadingWarning")


@pytest.fixture
def debian(real_data):
    """Return the folder of the two files; skip the test if it does not exist."""
    folder = real_data / "debian-tables"
    if not folder.is_dir():
        pytest.skip("put debian-tables into the folder NEURAL_BRANE_DATA to run this test")
    return folder


@pytest.fixture
def graph(debian):
    return read_graph(debian / "dependencies.csv", nodes=debian / "packages.csv", label="section")


def test_columns_are_typed_as_a_person_would(graph):
    kinds = {column.name: (column.kind, column.option) for column in graph.encoder.columns}
    assert kinds == {
        "package": ("id", None),
        "section": ("label", None),
        "priority": ("category", None),
        "installed_kb": ("number", 8),
        "multi_arch": ("category", None),
        "description": ("text", 2),
        "tags": ("list", ";"),
    }
    assert (len(graph), graph.edges, len(graph.classes)) == (13_128, 31_663, 12)
    assert not any(name.startswith("section") for name in graph.attribute_names.tolist())
    assert {"priority=optional", "multi_arch=foreign", "description:game", "tags=role::program"} <= set(
        graph.attribute_names.tolist()
    )


@pytest.mark.parametrize("way", ["polars", "polars with types", "pandas", "arrow", "parquet", "jsonl"])
def test_every_way_in_gives_the_same_bits(way, debian, graph, tmp_path):
    paths = [debian / name for name in ("dependencies.csv", "packages.csv")]
    if way == "pandas":
        pd = pytest.importorskip("pandas", reason="install pandas to test its data frames")
        frames = [pd.read_csv(path) for path in paths]
    elif way == "arrow":
        pytest.importorskip("pyarrow", reason="install pyarrow to test its tables")
        frames = [pl.read_csv(path).to_arrow() for path in paths]
    else:
        frames = [pl.read_csv(path, infer_schema=way != "polars") for path in paths]
    if way in ("parquet", "jsonl"):
        files = [tmp_path / f"{path.stem}.{way}" for path in paths]
        for frame, file in zip(frames, files, strict=True):
            (frame.write_parquet if way == "parquet" else frame.write_ndjson)(file)
        again = read_graph(files[0], nodes=files[1], label="section")
    else:
        again = AttributedGraph.from_frames(*frames, label="section")
    assert again.digest() == graph.digest()
    assert again.encoder.as_dict() == graph.encoder.as_dict()


@pytest.mark.slow
def test_links_add_to_what_the_columns_know(graph):
    scores = [
        classify(method.fit_transform(graph).vectors, graph.labels, train=[0.5], splits=3).as_dict()["scores"][0]
        for method in (Attributes(seed=0), PropagatedAttributes(seed=0))
    ]
    alone, beside = (score["macro_f1"]["mean"] for score in scores)
    assert 0.7 < alone < beside
