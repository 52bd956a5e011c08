"""Load datasets by name and read files: `load`, `read`, `read_labels` and `list_datasets`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from neural_brane.errors import DatasetError, GraphError
from neural_brane.files.datasets import list_datasets, load, read, read_labels, registry
from neural_brane.files.graphs.formats import write_graph

PUBLISHED = ["citeseer", "caltech36", "reed98", "arnetminer", "cora", "wiki", "acm", "haverford76", "debian-packages"]


@pytest.mark.parametrize("name", [*PUBLISHED, "stdlib"])
def test_counts_are_those_of_the_data(name, request):
    if name != "stdlib":
        request.getfixturevalue("real_data")
    dataset, graph = registry()[name], load(name)
    counts = (len(graph), graph.edges, len(graph.attribute_names), len(graph.classes))
    assert counts == (dataset.nodes, dataset.edges, dataset.attributes, dataset.classes)
    assert graph.name == name
    assert (graph.labels != "").all()


@pytest.mark.usefixtures("real_data")
def test_published_data_is_read_as_the_paper_describes_it():
    citeseer = load("citeseer", self_loops="drop")
    assert citeseer.edges == 4551
    assert (np.diff(citeseer.adjacency.indptr) == 0).sum() == 48
    assert citeseer.attributes.nnz / 3312 == pytest.approx(31.75, abs=0.01)
    assert sorted(np.unique(load("caltech36").labels, return_counts=True)[1]) == [150, 521]
    assert sorted(np.unique(load("reed98").labels, return_counts=True)[1]) == [131, 764]
    arnetminer = load("arnetminer")
    assert "DataMining" in arnetminer.classes
    assert arnetminer.adjacency[0, 2541] == pytest.approx(0.315328467153)
    cora = load("cora")
    assert cora.ids[0] == "31336"
    assert cora.adjacency[cora.ids.tolist().index("35"), cora.ids.tolist().index("1033")] == 1


@pytest.fixture
def without_attributes(tmp_path, monkeypatch, real_data):
    """Put arnetminer-15753 without its attribute file, which cannot be downloaded, into a new folder."""

    def refuse(address, target, pooch):
        raise OSError("no network")

    folder = tmp_path / "arnetminer-15753"
    folder.mkdir()
    for name in ("arnetminer_graph.txt", "arnetminer_node_labes.txt"):
        (folder / name).symlink_to(real_data / "arnetminer-15753" / name)
    monkeypatch.setenv("NEURAL_BRANE_DATA", str(tmp_path))
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache" / project)
    monkeypatch.setattr("pooch.HTTPDownloader", lambda timeout: refuse)
    return folder


def test_links_and_labels_are_loaded_without_attributes_that_are_missing_and_a_warning_says_so(without_attributes):
    with pytest.warns(UserWarning, match=r"'arnetminer-15753'.*attributes"):
        graph = load("arnetminer-15753")
    assert (len(graph), graph.edges, graph.attributes.shape[1]) == (15753, 109548, 0)
    assert len(graph.classes) == 5
    listed = {record.name: record for record in list_datasets()}["arnetminer-15753"]
    assert (listed.state, listed.attributes) == ("here", None)


@pytest.mark.filterwarnings("ignore:'arnetminer-15753' is loaded without")
def test_a_damaged_attribute_file_or_a_missing_label_file_is_an_error(without_attributes):
    (without_attributes / "arnetminer_NodeAtt.txt").write_text("0 1:1\n")
    with pytest.raises(DatasetError, match="expects git-blob:45dc0c"):
        load("arnetminer-15753")
    (without_attributes / "arnetminer_NodeAtt.txt").unlink()
    (without_attributes / "arnetminer_node_labes.txt").unlink()
    with pytest.raises(DatasetError, match=r"needs arnetminer_node_labes\.txt"):
        load("arnetminer-15753")


def test_the_list_tells_where_files_are(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURAL_BRANE_DATA", str(tmp_path / "own"))
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / "cache" / project)
    before = {record.name: record for record in list_datasets()}
    assert set(before) == {*registry(), "synthetic:NODES"}
    assert {before[name].state for name in PUBLISHED} == {"not downloaded"}
    assert before["stdlib"].state == before["synthetic:NODES"].state == "in the package"
    assert before["citeseer"].nodes == 3312
    assert before["arnetminer-15753"].attributes is None

    def put(base: str, name: str, files: slice = slice(None)) -> None:
        for file in registry()[name].files[files]:
            path = tmp_path / base / name / file.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()

    put("own", "citeseer")
    put("cache/neural-brane", "reed98")
    put("own", "cora", slice(1))
    put("own", "caltech36", slice(1))
    put("cache/neural-brane", "caltech36")
    after = {record.name: record for record in list_datasets()}
    assert (after["citeseer"].state, after["citeseer"].where) == ("here", str(tmp_path / "own" / "citeseer"))
    assert after["reed98"].state == after["caltech36"].state == "cached"
    assert (after["cora"].state, after["cora"].where) == ("not downloaded", "")


def test_read_takes_names_and_paths(tmp_path, monkeypatch):
    assert read("stdlib").digest() == load("stdlib").digest()
    assert len(read("synthetic:100")) == 100
    (tmp_path / "stdlib").write_text("a b\n")
    monkeypatch.chdir(tmp_path)
    assert read("./stdlib").name == "stdlib"
    assert len(read(Path("stdlib").absolute())) == 2
    (tmp_path / "l.txt").write_text("a x\n")
    assert read("./stdlib", labels="l.txt").labels.tolist() == ["x", ""]


def test_names_that_do_not_exist():
    with pytest.raises(
        DatasetError, match=r"no dataset 'citeser' \(did you mean 'citeseer'\?\); choose from citeseer, "
    ):
        load("citeser")
    with pytest.raises(DatasetError, match=r"'corra'.*file"):
        read("corra")
    with pytest.raises(DatasetError, match=r"'stdlib'.*labels"):
        read("stdlib", labels="l.txt")


def test_labels_come_from_a_dataset_a_graph_file_or_a_label_file(tmp_path):
    graph = load("stdlib")
    ids, labels = read_labels("stdlib")
    assert (ids.tolist(), labels.tolist()) == (graph.ids.tolist(), graph.labels.tolist())
    (tmp_path / "g.content").write_text("a\t1\tx\nb\t0\ty\n")
    (tmp_path / "g.cites").write_text("a\tb\n")
    (tmp_path / "l.txt").write_text("a\tx\nb\ty\n")
    for name in ("g.content", "g.cites", "l.txt"):
        ids, labels = read_labels(tmp_path / name)
        assert (ids.tolist(), labels.tolist()) == (["a", "b"], ["x", "y"])


def test_a_graph_without_labels_is_refused(tmp_path):
    write_graph(load("stdlib").relabelled(None), tmp_path / "g.npz")
    with pytest.raises(GraphError, match=r"g\.npz.*graph"):
        read_labels(tmp_path / "g.npz")
    with pytest.raises(DatasetError, match="neither a file nor a dataset"):
        read_labels("nothing-of-the-sort")
