"""A changed byte in a manifest is refused by name; so is JSON that is nested deeply."""

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from neural_brane import PropagatedAttributes, load_model
from neural_brane.errors import BraneError, CheckpointError, ModelError
from neural_brane.files import tensors
from neural_brane.files.graphs.shards import open_shards, write_shards
from neural_brane.files.storage import CHECKSUM, Manifest, parse_json
from neural_brane.files.vectors.parts import open_parts, write_parts


@dataclass(frozen=True)
class Run(Manifest):
    """A manifest like that of a distributed checkpoint."""

    FORMAT: ClassVar = "a run"
    VERSION: ClassVar = 1
    ERROR: ClassVar = CheckpointError
    FILE: ClassVar = "run.json"

    step: int
    weighted: bool


def write_manifest(kind, graph, folder):
    if kind == "shards":
        write_shards(graph, folder, 2)
        return folder / "manifest.json", open_shards
    if kind == "vectors":
        write_parts(folder, graph.ids, np.ones((len(graph), 2), np.float32), parts=2)
        return folder / "manifest.json", open_parts
    folder.mkdir()
    Run({}, 800, True).write(folder)
    return folder / "run.json", Run.read


kinds = pytest.mark.parametrize("kind", ["shards", "vectors", "checkpoint"])


@kinds
def test_every_flipped_byte_of_a_manifest_is_refused(kind, small_graph, tmp_path):
    path, read = write_manifest(kind, small_graph, tmp_path / "folder")
    whole = path.read_bytes()
    read(tmp_path / "folder")
    for at in range(len(whole)):
        for bit in (1, 32):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ bit]) + whole[at + 1 :])
            with pytest.raises(BraneError, match=f"{path.name}: .*;"):
                read(tmp_path / "folder")


@kinds
@pytest.mark.parametrize("depth", [101, 700, 100_000])
def test_deep_json_in_a_manifest_is_refused(kind, depth, small_graph, tmp_path):
    path, read = write_manifest(kind, small_graph, tmp_path / "folder")
    path.write_text(path.read_text().replace("{", '{"deep": ' + "[" * depth + "]" * depth + ",", 1))
    with pytest.raises(BraneError, match=f"{path.name}: is damaged.*JSON"):
        read(tmp_path / "folder")


def test_a_manifest_of_shards_from_before_checksums_is_read_if_its_entries_are_known(small_graph, tmp_path):
    write_shards(small_graph, tmp_path / "folder", 2)
    path = tmp_path / "folder/manifest.json"
    record = json.loads(path.read_text())
    del record[CHECKSUM]
    path.write_text(json.dumps(record))
    assert open_shards(tmp_path / "folder").edges == small_graph.edges
    path.write_text(json.dumps(record | {"checksun": 3}))
    with pytest.raises(BraneError, match=r"manifest\.json: is damaged, 'checksun'"):
        open_shards(tmp_path / "folder")
    path.write_text(json.dumps(record | {"weighted": "no"}))
    with pytest.raises(BraneError, match=r"manifest\.json: is damaged, 'weighted'.*bool"):
        open_shards(tmp_path / "folder")


def test_json_is_read_up_to_a_depth():
    assert parse_json('{"a": [1, {"b": null}]}') == {"a": [1, {"b": None}]}
    assert parse_json("[" * 100 + "]" * 100)
    for depth in (101, 5_000, 1_000_000):
        with pytest.raises(ValueError, match="nested"):
            parse_json("[" * depth + "]" * depth)


def test_every_flipped_byte_in_the_description_of_a_model_is_refused(small_graph, tmp_path):
    path = tmp_path / "m.brane"
    PropagatedAttributes(dim=3, seed=0).fit(small_graph).save(path)
    whole = path.read_bytes()
    end = 8 + int.from_bytes(whole[:8], "little")
    for at in range(0, end, 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(ModelError, match=r"m\.brane: "):
            load_model(path)


def test_deep_json_in_a_model_is_refused(tmp_path):
    kind = tensors.FileKind("model", "1", ModelError, "copy it", "convert it", "model")
    about = []
    for _ in range(200):
        about = [about]
    tensors.write(tmp_path / "m.brane", kind, {"deep": about}, {"a": np.zeros(1)})
    with pytest.raises(ModelError, match=r"m\.brane: .*metadata"):
        tensors.read(tmp_path / "m.brane", kind)
