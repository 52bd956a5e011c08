"""Commands that read vectors give the same answers for a folder of parts as for the merged file."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError, PartError
from neural_brane.explore.opening import open_view
from neural_brane.files.vectors import parts
from neural_brane.files.vectors.formats import FORMATS
from neural_brane.files.vectors.parts import KINDS, open_parts, write_parts


def brane(*words):
    return CliRunner().invoke(app, [*map(str, words)])


def done(*words):
    result = brane(*words)
    assert result.exit_code == 0, result.stderr
    return result.stdout


@pytest.fixture
def merged(tmp_path, small_graph, monkeypatch):
    monkeypatch.chdir(tmp_path)
    vectors = np.random.default_rng(0).normal(size=(12, 4))
    made_from = np.array(["links", "nothing"] * 6)
    found = Embedding(vectors, small_graph.ids, {"method": "by hand", "parameters": {"seed": 5}}, made_from)
    found.save("v.npz")
    small_graph.save("g.npz")
    return found


def split(merged, kind):
    known = {"provenance": merged.provenance, "made_from": merged.made_from}
    write_parts(Path("parts"), merged.ids, merged.vectors, parts=3, kind=kind, **known)
    return "parts"


@pytest.fixture
def folder(merged):
    return split(merged, "npy")


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_split_into_parts_that_load_as_the_file_does(merged, kind):
    said = done("convert", "v.npz", "-o", "split", "--parts", 5, "--part-format", kind)
    assert said == "wrote 12 x 4 vectors to split, in 5 parts\n"
    found = Embedding.load("split")
    np.testing.assert_array_equal(found.vectors, merged.vectors)
    np.testing.assert_array_equal(found.ids, merged.ids)
    np.testing.assert_array_equal(found.made_from, merged.made_from)
    assert found.provenance == merged.provenance
    assert found.vectors.flags.writeable


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_folder_is_merged_into_what_the_file_converts_to(merged, folder, suffix, tmp_path):
    first, second = brane("convert", "v.npz", "-o", f"one{suffix}"), brane("convert", folder, "-o", f"two{suffix}")
    assert second.exit_code == 0, second.stderr
    assert second.stdout == first.stdout.replace("one", "two")
    assert second.stderr == first.stderr
    if FORMATS[suffix].folder:
        pairs = [(path, tmp_path / f"two{suffix}" / path.name) for path in (tmp_path / f"one{suffix}").iterdir()]
    else:
        pairs = [(path, tmp_path / path.name.replace("one", "two")) for path in tmp_path.glob("one*")]
    assert pairs
    if suffix != ".h5ad":  # this format contains the time of writing
        assert all(one.read_bytes() == two.read_bytes() for one, two in pairs)
    one, two = Embedding.load(f"one{suffix}"), Embedding.load(f"two{suffix}")
    np.testing.assert_array_equal(one.vectors, two.vectors)
    np.testing.assert_array_equal(one.ids, two.ids)
    assert one.provenance == two.provenance


@pytest.mark.parametrize("kind", KINDS)
def test_commands_answer_as_of_the_merged_file(merged, kind):
    folder = split(merged, kind)
    for words in (
        ["nearest", "FILE", "ann", "gus", "-k", 3, "--json"],
        ["nearest", "FILE", "ann", "--graph", "g.npz", "--center"],
        ["evaluate", "FILE", "--labels", "g.npz", "--task", "clustering"],
        ["cluster", "FILE", "-k", 2],
    ):
        first, second = (done(*(source if word == "FILE" else word for word in words)) for source in ("v.npz", folder))
        assert second.replace(folder, "v.npz") == first
    one, two = open_view([Path("v.npz")]), open_view([Path(folder)])
    np.testing.assert_array_equal(one.runs[0].vectors, two.runs[0].vectors)
    np.testing.assert_array_equal(one.nodes.ids, two.nodes.ids)
    assert "wrote a map of 12 nodes" in done("explore", folder, "--html", "map.html", "--layout", "pca")


def test_an_index_is_built_from_a_folder_and_asked(merged, folder):
    pytest.importorskip("faiss", reason="install faiss-cpu to build an index")
    first = done("nearest", folder, "ann", "--index", "i.faiss", "--json")
    assert first == done("nearest", folder, "ann", "--index", "i.faiss", "--json")
    assert [one["id"] for one in json.loads(first)[0]["nearest"]] == [node for node, _ in merged.nearest("ann")]
    assert first == done("nearest", "v.npz", "ann", "--index", "i.faiss", "--json")


def test_info_tells_what_a_folder_holds(merged, folder):
    found = json.loads(done("info", folder, "--json"))
    assert (found["kind"], found["nodes"], found["dim"], found["parts"]) == ("vectors in parts", 12, 4, 3)
    assert (found["method"], found["seed"]) == ("by hand", 5)
    assert found["size"] == sum(about["bytes"] for about in open_parts(folder).files.values())
    assert done("info", folder).startswith("parts: vectors in parts, 12 x 4 (")
    assert "is a folder without a manifest" in brane("info", ".").stderr


def test_a_folder_is_split_again(merged, folder):
    done("convert", folder, "-o", "again", "--parts", 2)
    again = Embedding.load("again")
    np.testing.assert_array_equal(again.vectors, merged.vectors)
    np.testing.assert_array_equal(again.made_from, merged.made_from)
    assert open_parts("again").bounds.tolist() == [0, 6, 12]


def test_outputs_that_are_inputs_or_make_no_sense_are_refused(merged, folder, tmp_path):
    name = sorted(path.name for path in (tmp_path / "parts").glob("part-*"))[-1]
    assert "is also read as VECTORS" in brane("convert", folder, "-o", f"parts/{name}").stderr
    assert "is also read as VECTORS" in brane("convert", folder, "-o", "parts", "--parts", 2).stderr
    assert "is also read as VECTORS" in brane("convert", folder, "-o", "./parts/", "--parts", 2).stderr
    assert "give --parts N to write a folder" in brane("convert", folder, "-o", "whole").stderr
    assert "v.npz: is a file" in brane("convert", folder, "-o", "v.npz", "--parts", 2).stderr
    assert "0 parts make no sense" in brane("convert", folder, "-o", "x", "--parts", 0).stderr
    assert "contains its ids" in brane("convert", folder, "--ids", "v.npz", "-o", "x.npz").stderr
    assert "contains its ids" in brane("nearest", folder, "ann", "--ids", "v.npz").stderr
    np.testing.assert_array_equal(Embedding.load(folder).vectors, merged.vectors)


def test_the_folder_of_something_else_is_not_written_over(merged, tmp_path):
    (tmp_path / "graph").mkdir()
    (tmp_path / "graph" / "manifest.json").write_text('{"format": "neural-brane shards"}')
    assert "graph: its manifest.json" in brane("convert", "v.npz", "-o", "graph", "--parts", 2).stderr
    assert [path.name for path in (tmp_path / "graph").iterdir()] == ["manifest.json"]
    assert "'neural-brane vectors'" in brane("nearest", "graph", "ann").stderr
    (tmp_path / "none").mkdir()
    assert "none: has no manifest.json" in brane("nearest", "none", "ann").stderr


def test_damage_is_refused_by_name(merged, folder, tmp_path):
    damaged = tmp_path / "parts" / sorted(path.name for path in (tmp_path / "parts").glob("part-*"))[0]
    content = bytearray(damaged.read_bytes())
    content[-1] ^= 1
    damaged.write_bytes(content)
    for words in (
        ["nearest", folder, "ann"],
        ["convert", folder, "-o", "x.csv"],
        ["evaluate", folder, "--labels", "g.npz"],
    ):
        assert f"{damaged.name}: is damaged" in brane(*words).stderr
    assert not (tmp_path / "x.csv").exists()


def test_numbers_without_a_distance_are_not_merged(merged, tmp_path):
    merged.vectors[7, 1] = np.nan
    write_parts(tmp_path / "parts", merged.ids, merged.vectors, parts=3)
    assert "parts: vector 8 holds NaN" in brane("convert", "parts", "-o", "x.csv").stderr
    assert not (tmp_path / "x.csv").exists()
    with pytest.raises(EmbeddingError, match="vector 8 holds NaN"):
        Embedding.load("parts")


def test_ids_that_a_format_cannot_hold_are_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_parts(tmp_path / "parts", np.array(["a", "New York", "b"]), np.eye(3), parts=2)
    assert "id 'New York'" in brane("convert", "parts", "-o", "x.bin").stderr
    assert not (tmp_path / "x.bin").exists()


def test_a_merge_reads_blocks_and_neither_all_vectors_nor_all_ids(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nodes = 40_000
    vectors = np.random.default_rng(0).random((nodes, 3), np.float32)
    write_parts(tmp_path / "parts", np.arange(nodes) * 3, vectors, parts=2)
    read = []

    from neural_brane.files.vectors.parts import _Parts

    pieces = _Parts._pieces
    monkeypatch.setattr(
        _Parts, "_pieces", lambda self, begin, end: read.append(end - begin) or pieces(self, begin, end)
    )
    for suffix in (".npy", ".parquet", ".csv", ".w2v", ".pgvector"):
        read.clear()
        done("convert", "parts", "-o", f"x{suffix}")
        assert sum(read) == 2 * nodes  # the vectors and the ids, each once
        assert max(read) <= parts.WRITTEN_ROWS
    np.testing.assert_array_equal(Embedding.load("x.parquet").vectors, vectors)


def test_mapping_a_folder_says_what_does(merged, folder):
    with pytest.raises(PartError, match="EmbeddingParts"):
        Embedding.load(folder, mmap=True)
