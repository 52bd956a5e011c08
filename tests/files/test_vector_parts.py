"""Vectors in a folder of parts are read as they were written; an error names a damaged file."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from threading import Barrier

import numpy as np
import pytest

from neural_brane.errors import PartError
from neural_brane.files.storage import describe_files
from neural_brane.files.vectors.parquet import read_parquet
from neural_brane.files.vectors.parts import KINDS, PartWriter, VectorManifest, finish, open_parts

ROWS = [5, 0, 7, 1]
UNUSUAL = ["ä", "", "a b", "x\ty", "line\nbreak", "007", '"quoted"', "日本", "-1", "a,b", "NaN", "'", "\r"]


def numbers(nodes=13, dim=3):
    return np.random.default_rng(1).standard_normal((nodes, dim)).astype(np.float32)


def write(folder, ids, vectors, rows=ROWS, kind="npy", block=2, **known):
    first = 0
    for part, count in enumerate(rows):
        with PartWriter(folder, part, first, count, vectors.shape[1], kind) as out:
            for at in range(first, first + count, block):
                span = slice(at, min(at + block, first + count))
                out.write(ids[span], vectors[span])
        first += count
    finish(folder, len(rows), **known)
    return folder


def write_part(folder, rows, *blocks):
    with PartWriter(folder, 0, 0, rows, 3) as out:
        for block in blocks:
            if isinstance(block, BaseException):
                raise block
            out.write(*block)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ids", [np.arange(13) * 7 - 20, np.array(UNUSUAL)], ids=["integers", "strings"])
def test_parts_are_read_as_they_were_written(tmp_path, kind, ids):
    vectors = numbers()
    found = open_parts(write(tmp_path / "v", ids, vectors, kind=kind, provenance={"method": "m"}))
    assert (found.nodes, found.dim, len(found), found.provenance) == (13, 3, 13, {"method": "m"})
    assert found.bounds.tolist() == [0, 5, 5, 12, 13]
    np.testing.assert_array_equal(found.vectors[:], vectors)
    np.testing.assert_array_equal(np.asarray(found.ids), ids)
    np.testing.assert_array_equal(np.concatenate([block for _, block in found.blocks(4)]), vectors)
    np.testing.assert_array_equal(np.concatenate([names for names, _ in found.blocks(4)]), ids)
    rows = np.array([12, 0, 5, 4, 0, 11])
    np.testing.assert_array_equal(found.vectors[rows], vectors[rows])
    np.testing.assert_array_equal(found.ids[rows], ids[rows])
    np.testing.assert_array_equal(found.vectors[3:9], vectors[3:9])
    assert found.ids.find(ids[[12, 5, 0]]).tolist() == [12, 5, 0]
    assert found.ids.find(np.array(["absent"])).tolist() == [-1]
    found.check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_of_empty_parts_has_no_vectors(tmp_path, kind):
    found = open_parts(write(tmp_path, np.empty(0, int), numbers(0), [0, 0], kind))
    assert (found.nodes, found.vectors[:].shape, np.asarray(found.ids).shape) == (0, (0, 3), (0,))
    assert list(found.blocks()) == []
    found.check()


def test_a_parquet_part_can_be_read_as_a_file_of_vectors(tmp_path):
    write(tmp_path, np.array(UNUSUAL), numbers(), kind="parquet")
    table = read_parquet(tmp_path / "part-00002.parquet")
    np.testing.assert_array_equal(table.vectors, numbers()[5:12])
    assert table.ids.tolist() == UNUSUAL[5:12]


@pytest.mark.parametrize("kind", KINDS)
def test_made_from_is_kept(tmp_path, kind):
    with PartWriter(tmp_path, 0, 0, 2, 3, kind) as out:
        out.write(["a"], numbers(1), ["links"])
        out.write(["b"], numbers(1), ["nothing"])
    finish(tmp_path, 1)
    assert open_parts(tmp_path).made_from[:].tolist() == ["links", "nothing"]


def test_a_new_set_of_parts_replaces_an_older_one(tmp_path):
    write(tmp_path, np.arange(13), numbers(), kind="parquet")
    mine = ["notes.txt", "part-00007.npy"]
    for name in mine:
        (tmp_path / name).write_text("mine")
    write_part(tmp_path, 13, (np.arange(13), numbers()))  # this set never gets its manifest
    write(tmp_path, np.arange(13), numbers(), [13])
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*mine, "manifest.json", "part-00000.ids.parquet", "part-00000.npy"]
    )
    np.testing.assert_array_equal(open_parts(tmp_path).vectors[:], numbers())


def test_several_writers_write_their_parts_at_the_same_time(tmp_path):
    def write_own(part):
        with PartWriter(tmp_path, part, part * 10, 10, 3, KINDS[0]) as out:
            together.wait()  # until all parts are open
            for at in range(part * 10, part * 10 + 10):
                out.write([at], vectors[at : at + 1])

    vectors, together = numbers(80), Barrier(8)
    write(tmp_path, np.arange(13), numbers())  # the parts below replace this set
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write_own, range(8)))
    finish(tmp_path, 8)
    found = open_parts(tmp_path)
    found.check()
    np.testing.assert_array_equal(found.vectors[:], vectors)
    assert len(list(tmp_path.iterdir())) == 17


def test_a_failed_part_changes_no_file_but_removes_the_manifest(tmp_path):
    write(tmp_path, np.arange(13), numbers(), [13])
    before = (tmp_path / "part-00000.npy").read_bytes()
    with pytest.raises(KeyboardInterrupt):
        write_part(tmp_path, 2, ([1], numbers(1)), KeyboardInterrupt())
    assert (tmp_path / "part-00000.npy").read_bytes() == before
    with pytest.raises(PartError, match=r"has no manifest\.json"):
        open_parts(tmp_path)
    with pytest.raises(PartError, match=r"no part-00000\.json.*write this part again"):
        finish(tmp_path, 1)


@pytest.mark.parametrize(("old", "new"), [('"rows": 7', '"rows": 6'), ('"kind"', '"kinf"'), ("{", '{"":' * 100_000)])
def test_a_changed_record_of_a_part_is_refused(old, new, tmp_path):
    write_part(tmp_path, 7, (np.arange(7), numbers(7)))
    path = tmp_path / "part-00000.json"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(PartError, match=r"part-00000\.json: .*write this part again"):
        finish(tmp_path, 1)


def test_a_writer_refuses_wrong_rows_shapes_and_types(tmp_path):
    for rows, message, *blocks in [
        (2, "1 of 2 rows", ([1], numbers(1))),
        (1, "more than 1 rows", ([1, 2], numbers(2))),
        (1, r"shape \(2, 3\).* 1 ids", ([1], numbers(2))),
        (2, "ids.*integers.*strings", ([1], numbers(1)), (["a"], numbers(1))),
        (2, "made_from", ([1], numbers(1), ["links"]), ([2], numbers(1))),
    ]:
        with pytest.raises(PartError, match=message):
            write_part(tmp_path, rows, *blocks)
    with pytest.raises(PartError, match="makes no sense"):
        PartWriter(tmp_path, 0, 0, 2, 3, "csv")
    with pytest.raises(PartError, match="is not open"):
        PartWriter(tmp_path, 0, 0, 1, 3).write([1], numbers(1))
    assert list(tmp_path.iterdir()) == []


def test_parts_that_do_not_fit_together_are_refused(tmp_path):
    for part, first, ids, kind, message in [
        (1, 4, [1], "npy", "part-00001.npy: .*node 4.* 2"),
        (1, 2, ["a"], "npy", "parts.*'ids': integer and string"),
        (1, 2, [1], "parquet", "parts.*'kind': npy and parquet"),
    ]:
        folder = tmp_path / f"{kind} {first} {ids[0]}"
        with PartWriter(folder, 0, 0, 2, 3) as out:
            out.write([7, 8], numbers(2))
        with PartWriter(folder, part, first, 1, 3, kind) as out:
            out.write(ids, numbers(1))
        with pytest.raises(PartError, match=message):
            finish(folder, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_opening_names_a_file_that_is_missing_or_has_the_wrong_size(tmp_path, kind):
    write(tmp_path, np.arange(13), numbers(), kind=kind)
    for path in sorted(tmp_path.iterdir()):
        if path.name == "manifest.json":
            continue
        content = path.read_bytes()
        sizes = f"{len(content):,}"
        for damaged, message in [(None, "missing"), (content[:-1], sizes), (content + b"x", sizes)]:
            path.unlink() if damaged is None else path.write_bytes(damaged)
            with pytest.raises(PartError, match=f"{path.name}: .*{message}"):
                open_parts(tmp_path)
        path.write_bytes(content)
    open_parts(tmp_path).check()


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_byte_is_found_by_the_check_and_before_polars_reads_it(tmp_path, kind):
    write(tmp_path, np.arange(13), numbers(), kind=kind)
    for path in sorted(tmp_path.iterdir()):
        if path.name == "manifest.json":
            continue
        content = path.read_bytes()
        changed = bytearray(content)
        changed[-1] ^= 4
        path.write_bytes(changed)
        with pytest.raises(PartError, match=f"{path.name}: is damaged"):
            open_parts(tmp_path).check()
        if path.suffix == ".parquet" and path.name[5:10] != "00001":  # part 1 is empty and never read
            with pytest.raises(PartError, match=f"{path.name}: is damaged"):
                open_parts(tmp_path).ids[:]
        path.write_bytes(content)


def test_a_manifest_that_is_cut_off_changed_or_of_another_version_is_refused(tmp_path):
    write(tmp_path, np.arange(13), numbers())
    path = tmp_path / "manifest.json"
    text = path.read_text()
    for end in range(0, len(text) - 3, 97):
        path.write_text(text[:end])
        with pytest.raises(PartError, match=r"manifest\.json: .*JSON"):
            open_parts(tmp_path)
    for changed, message in [
        (text.replace('"nodes": 13', '"nodes": 14'), "checksum"),
        (text.replace('"version": 1', '"version": 2'), "version 2"),
        (text.replace('"neural-brane vectors"', '"neural-brane shards"'), "format.*'neural-brane vectors'"),
        ("[1]", "JSON"),
        ("\x00\xff", "JSON"),
    ]:
        path.write_text(changed, encoding="latin-1")
        with pytest.raises(PartError, match=message):
            open_parts(tmp_path)
    for missing in ("checksum", "dim", "parts", "files", "ids"):
        content = json.loads(text)
        del content[missing]
        path.write_text(json.dumps(content))
        with pytest.raises(PartError, match=r"manifest\.json: is damaged.*checksum"):
            open_parts(tmp_path)


def test_an_array_of_another_shape_is_refused(tmp_path):
    write(tmp_path, np.arange(13), numbers(), [13])
    content = json.loads((tmp_path / "manifest.json").read_text())
    np.save(tmp_path / "part-00000.npy", numbers().astype(np.float64))
    content["files"] |= describe_files(tmp_path, ["part-00000.npy"])
    VectorManifest(**{field.name: content[field.name] for field in fields(VectorManifest)}).write(tmp_path)
    with pytest.raises(PartError, match=r"part-00000\.npy: .*float64"):
        open_parts(tmp_path)


def test_rows_are_indexed_by_existing_numbers_or_slices(tmp_path):
    found = open_parts(write(tmp_path, np.arange(13), numbers()))
    np.testing.assert_array_equal(found.vectors[np.array([-1])], numbers()[-1:])
    np.testing.assert_array_equal(found.vectors[::5], numbers()[::5])
    assert found.vectors[9:2].shape == (0, 3)
    assert found.vectors[[]].shape == (0, 3)
    with pytest.raises(IndexError, match="13 rows"):
        found.vectors[np.array([13])]
    with pytest.raises(PartError, match="index is float64"):
        found.vectors[np.array([0.5])]
    with pytest.raises(PartError, match="index is bool"):
        found.vectors[np.zeros(13, bool)]


def test_finding_an_id_with_two_vectors_is_refused(tmp_path):
    for rows in ([13], ROWS):
        found = open_parts(write(tmp_path, np.arange(13) % 12, numbers(), rows))
        assert found.ids.find(np.array([11, 3])).tolist() == [11, 3]
        with pytest.raises(PartError, match="id 0"):
            found.ids.find(np.array([5, 0]))
