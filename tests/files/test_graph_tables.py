"""Read tables of edges in all formats, compressions and encodings, and text that could be a table."""

from __future__ import annotations

import gzip
import io
import sys

import numpy as np
import polars as pl
import pytest

from neural_brane.errors import GraphError, ReadingWarning
from neural_brane.files.graphs.formats import read_graph

EDGES = pl.DataFrame(
    {
        "from": ["Jean Valjean", "Javert", "Cosette, dite l'Alouette", "Éponine"],
        "to": ["Javert", "Cosette, dite l'Alouette", 'M. "Marius"', "Jean Valjean"],
        "weight": [3.0, 0.5, 2.0, 1.0],
    }
)


def edges_of(graph) -> set[tuple]:
    entries = graph.adjacency.tocoo()
    ids = graph.ids.tolist()
    found = zip(entries.row, entries.col, entries.data, strict=True)
    return {(*sorted((ids[u], ids[v])), float(w)) for u, v, w in found}


def edges_in(frame: pl.DataFrame) -> set[tuple]:
    return {(*sorted((u, v)), w) for u, v, w in frame.iter_rows()}


def as_text(separator: str, encoding: str, line_end: str = "\n") -> bytes:
    return EDGES.write_csv(separator=separator).replace("\n", line_end).encode(encoding)


def as_file(write) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


FORMATS = {
    "csv": as_text(",", "utf-8"),
    "csv-bom": as_text(",", "utf-8-sig"),
    "csv-utf-16": as_text(",", "utf-16"),
    "csv-utf-16-be": as_text(",", "utf-16-be"),
    "csv-windows": as_text(";", "utf-8", "\r\n"),
    "csv-old-mac": as_text("|", "utf-8", "\r"),
    "tsv": as_text("\t", "utf-8"),
    "tsv-utf-16-windows": as_text("\t", "utf-16", "\r\n"),
    "jsonl": as_file(EDGES.write_ndjson),
    "jsonl-utf-16": as_file(EDGES.write_ndjson).decode().encode("utf-16"),
    "parquet": as_file(EDGES.write_parquet),
    "arrow": as_file(EDGES.write_ipc),
    "feather-lz4": as_file(lambda file: EDGES.write_ipc(file, compression="lz4")),
    "arrow-stream": as_file(EDGES.write_ipc_stream),
}


def compress(data: bytes, packing: str) -> bytes:
    if packing == ".zst":
        name = "backports.zstd" if sys.version_info < (3, 14) else "compression.zstd"
        return pytest.importorskip(name, reason="install backports.zstd to read .zst").compress(data)
    return gzip.compress(data) if packing else data


@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_gives_the_same_graph(tmp_path, kind, packing):
    path = tmp_path / f"les.mis.{kind.partition('-')[0]}{packing}"
    path.write_bytes(compress(FORMATS[kind], packing))
    graph = read_graph(path)
    assert graph.name == "les.mis"
    assert graph.ids[:2].tolist() == ["Jean Valjean", "Javert"]
    assert edges_of(graph) == edges_in(EDGES)


@pytest.mark.parametrize("kind", FORMATS)
def test_the_format_is_recognised_by_the_content(tmp_path, kind):
    path = tmp_path / "edges.txt"
    path.write_bytes(FORMATS[kind])
    assert edges_of(read_graph(path)) == edges_in(EDGES)


@pytest.mark.parametrize("kind", ["csv-bom", "parquet"])
def test_standard_input(monkeypatch, kind):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(FORMATS[kind])))
    assert edges_of(read_graph("-")) == edges_in(EDGES)
    assert not sys.stdin.buffer.closed


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("Jean Valjean,Javert,3\nJavert,Cosette,1\n", {("Javert", "Jean Valjean", 3), ("Cosette", "Javert", 1)}),
        ("Jean Valjean\tJavert\nJavert\tCosette\n", {("Javert", "Jean Valjean", 1), ("Cosette", "Javert", 1)}),
        ("source,target\nann,bob\nbob,cid\n", {("ann", "bob", 1), ("bob", "cid", 1)}),
        ("source,target\n1,2\n2,3\n", {(1, 2, 1), (2, 3, 1)}),
        ("ann;bob\nbob;cid\n", {("ann", "bob", 1), ("bob", "cid", 1)}),
        ('"ann" "bob"\n', {('"ann"', '"bob"', 1)}),
        ("a|x b|x\nb|x c|x\n", {("a|x", "b|x", 1), ("b|x", "c|x", 1)}),
        ("1, 2\n2, 3\n", {(1, 2, 1), (2, 3, 1)}),
        ("ann bob\n", {("ann", "bob", 1)}),
        ("Jean Valjean;Javert\nJavert;Cosette\n", {("Javert", "Jean Valjean", 1), ("Cosette", "Javert", 1)}),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_text_of_any_name(tmp_path, text, edges, encoding):
    path = tmp_path / "g.txt"
    path.write_bytes(text.encode(encoding))
    assert edges_of(read_graph(path)) == edges


@pytest.mark.parametrize(
    ("text", "edges"),
    [
        ("person,friend\nann,bob\nbob,cid\ncid,ann\nann,dan\n", "ann-bob ann-cid ann-dan bob-cid"),
        ("package,needs,kind\na,b,depends\nb,c,depends\nc,a,suggests\nd,a,depends\n", "a-b b-c a-c a-d"),
        ("a,b\nb,c\n", "a-b b-c"),
        ("user-1,user-2\nuser-3,user-4\n", "user-1-user-2 user-3-user-4"),
        ("#source\ttarget\nann\tbob\nbob\tcid\n", "ann-bob bob-cid"),
        ("ann,bob,friend of,2019\nbob,cid,foe,2020\n", "ann-bob bob-cid"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*not used:neural_brane.errors.ReadingWarning")
def test_titles_and_edges_are_distinguished(tmp_path, text, edges):
    path = tmp_path / "g.csv"
    path.write_text(text)
    assert {f"{u}-{v}" for u, v, _ in edges_of(read_graph(path))} == set(edges.split())


@pytest.mark.parametrize(
    ("data", "place", "words"),
    [
        (b"a,b\nc,d\n", ":1", "'a,b' titles header=True --header"),
        (b"source,target\n", "", "rows"),
        (b"ann,bob,1\nbob,cid\n", ":2", "2 fields 'bob,cid' 3 quotes"),
        (b"source,target\nann,bob\n\nbob,\n", ":4", "'target' empty nodes"),
        (b"source,target\nann,bob\nbob,NaN\n", ":3", "'target' 'NaN'"),
        (b"source,target\nann,null\n", ":2", "'target' 'null'"),
        (b"source,target,weight\nann,bob,1e-300\n", ":2", "'weight' '1e-300'"),
        (b"source,target,weight\nann,bob,\n", ":2", "'weight' missing"),
        (b'source,target\n"ann,bob\nbob,cid\n', ":2", "quotes"),
        (b"source,target\nann,b\xf6b\n", ":2", "0xf6 UTF-8"),
        (b"source,target\nann,b\0b\n", ":2", "binary UTF-8"),
        (b"\0\1\2\3", ":1", "binary UTF-8"),
        (gzip.compress(FORMATS["csv"], mtime=0)[:40], "", "gzip damaged"),
        (gzip.compress(gzip.compress(b"a,b\n", mtime=0), mtime=0), "", "gzip twice"),
        (FORMATS["parquet"][:200], "", "Parquet"),
        (b'{"source": 1, "target": 2}\n{"source": \n', ":2", "JSON"),
        (b"PK\x03\x04....", "", "zip unpack"),
    ],
)
def test_tables_that_cannot_be_read(read_malformed, data, place, words):
    message = read_malformed({"g.csv": data})
    assert message.startswith(f"g.csv{place}: ")
    assert all(word in message for word in words.split())


def test_large_unsigned_ids_stay_apart(tmp_path):
    path = tmp_path / "g.csv"
    big = 2**63
    path.write_text(f"source,target\n{big},{big + 1}\n{big + 1},7\n")
    assert read_graph(path).ids.tolist() == [str(big), str(big + 1), "7"]
    pl.DataFrame({"u": [big, big + 1], "v": [big + 1, 7]}, schema={"u": pl.UInt64, "v": pl.UInt64}).write_parquet(
        tmp_path / "g.parquet"
    )
    assert read_graph(tmp_path / "g.parquet").ids.tolist() == [str(big), str(big + 1), "7"]


def test_a_header_that_may_be_an_edge_warns(write):
    with pytest.warns(ReadingWarning, match=r"header.*7.*0.*6"):
        assert len(read_graph(write("g.txt", "7 2\n1 3\n2 4\n"))) == 7
    assert read_graph(write("g.txt", "7 2\n2 3\n3 9\n9 1\n")).ids.tolist() == [1, 2, 3, 7, 9]


def test_a_compressed_file_that_would_fill_memory_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("neural_brane.files.reading.SMALL", 1 << 20)
    path = tmp_path / "g.csv.gz"
    path.write_bytes(gzip.compress(b"ann,bob\n" * 1_000_000))
    with pytest.raises(GraphError, match=r"g\.csv\.gz.*graph"):
        read_graph(path)


def test_attribute_and_label_files_go_with_a_table(tmp_path):
    (tmp_path / "g.csv").write_text("source,target\nann,bob\n")
    (tmp_path / "a.txt").write_bytes("ann chess\n".encode("utf-16"))
    (tmp_path / "l.txt").write_bytes(gzip.compress("\ufeffann\tred\n".encode()))
    graph = read_graph(tmp_path / "g.csv", attributes=tmp_path / "a.txt", labels=tmp_path / "l.txt")
    assert graph.attribute_names.tolist() == ["chess"]
    np.testing.assert_array_equal(graph.labels, ["red", ""])
