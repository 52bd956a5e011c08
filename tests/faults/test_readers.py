"""Reading any file ends with valid data or one of our errors, with little memory."""

from __future__ import annotations

import gzip
import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

hypothesis = pytest.importorskip("hypothesis", reason="install hypothesis to read random files")
st = hypothesis.strategies

HERE = Path(__file__).parent
MOST_MB = 500  # memory for all files
PATIENCE = 3600  # seconds; only a reader that never ends takes so long
SUFFIXES = (
    ".txt", ".csv", ".tsv", ".jsonl", ".graphml", ".gexf", ".gml", ".mtx", ".npz", ".npy", ".bin", ".parquet",
    ".arrow", ".cites", ".vec", ".h5ad", ".safetensors", ".pgvector", "",
)  # fmt: skip
PACKINGS = ("", "", "", ".gz")
STARTS = (
    b"", b"", b"PAR1", b"ARROW1\0\0", b"\xff" * 4, b"PK\x03\x04", b"\x93NUMPY\x01\0", b"\x1f\x8b\x08",
    b"\x28\xb5\x2f\xfd", b"\x89HDF\r\n\x1a\n", b"\x08\0\0\0\0\0\0\0",
)  # fmt: skip


def load_checks():
    specification = importlib.util.spec_from_file_location("reader_checks", HERE / "reader_checks.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


checks = load_checks()

plain_words = st.sampled_from(["ann", "bob", "cat", "dan", "1", "2", "0.5", "3", "tea:1"])
odd_words = st.sampled_from(
    [
        "7", "0", "-1", "007", "id", "source", "target", "weight", "label", "nan", "None", "null", "", " ", "NaN",
        "inf", "-inf", "1e-300", "1e300", "1e-46", "0x1", "1_0", "18446744073709551615", "9" * 400, "\ufeff", "é",
        "e\u0301", "\u202e", "\0", "\u2028", "\x85", "\x0b", "\x1c", "a:1", "b:nan", "c:-1", ":", "::", '"', '"a b"',
        '""',
        "'", "#", "%", "<", "&amp;", "[", "]", "{", "}", "\\", "\\N", "😀", "\u0661", "1.5", "true", "1 2",
    ]
)  # fmt: skip
words = plain_words | odd_words | st.text(max_size=6)
breaks = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\n", "\u2028"])
TITLES = ("", "source,target,weight", "id,label", "# a b", "2 1", "3 2", "u;v", "id\td0\td1")


@st.composite
def texts(draw) -> str:
    """Return lines of words: most rows have the same length and separator; some have a header."""
    separator, end = draw(st.sampled_from([" ", "\t", ",", ";", "|", ", ", "  "])), draw(breaks)
    width, word = draw(st.integers(1, 4)), draw(st.sampled_from([plain_words, words]))
    ragged = st.lists(words, max_size=5) if draw(st.booleans()) else st.nothing()
    rows = draw(st.lists(st.lists(word, min_size=width, max_size=width) | ragged, max_size=6))
    first = draw(st.sampled_from(TITLES)) if draw(st.booleans()) else ""
    return end.join(([first] if first else []) + [separator.join(row) for row in rows])


values = st.recursive(
    words | st.none() | st.booleans() | st.integers() | st.floats(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
keys = st.sampled_from(["source", "target", "weight", "id", "label", "x"])
json_lines = st.lists(st.dictionaries(keys, values, max_size=4) | values, max_size=5).map(
    lambda rows: "\n".join(map(json.dumps, rows))
)


GRAPHML = """<graphml><key id="k" for="node" attr.name="{a}" attr.type="{c}"/><graph edgedefault="undirected">
<node id="{a}"><data key="k">{c}</data></node><node id="{b}"/>
<edge source="{a}" target="{b}"><data key="weight">{d}</data></edge></graph></graphml>"""
GEXF = """<gexf><graph><attributes class="node"><attribute id="0" title="{c}" type="{d}"/></attributes>
<nodes><node id="{a}" label="{c}"/><node id="{b}"><attvalues><attvalue for="0" value="{c}"/></attvalues></node></nodes>
<edges><edge source="{a}" target="{b}" weight="{d}"/></edges></graph></gexf>"""
GML = """graph [ node [ id {a} label "{c}" class "{d}" ]
node [ id {b} {c} {d} ] edge [ source {a} target {b} weight {d} ] ]"""
PAIRS = """%%MatrixMarket matrix coordinate real symmetric\n% node ["{a}"]\n% node ["{b}"]\n2 2 1\n2 1 {d}\n"""
ARRAY = """%%MatrixMarket matrix array {c} general\n2 {a}\n1\n{b}\n{c}\n{d}\n"""


@st.composite
def markup(draw) -> str:
    """Return GraphML, GEXF, GML or Matrix Market with unusual words as ids, weights and data."""
    word = draw(st.sampled_from([plain_words, words]))
    return draw(st.sampled_from([GRAPHML, GEXF, GML, PAIRS, ARRAY])).format(**{key: draw(word) for key in "abcd"})


def bytes_of(text: str, encoding: str) -> bytes:
    return text.encode(encoding, "surrogatepass")


encoded = st.builds(
    bytes_of,
    texts() | texts() | json_lines | markup(),
    st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32"]),
)
contents = (
    encoded
    | encoded
    | encoded
    | st.builds(lambda start, rest: start + rest, st.sampled_from(STARTS), st.binary(max_size=60))
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder with a valid graph, after reading it once, so that the libraries are loaded."""
    folder = tmp_path_factory.mktemp("readers")
    (folder / "sound.txt").write_text("ann bob 2\nbob cat 1\n")
    assert checks.attempt_graph(folder / "sound.txt") == "read"
    return folder


def read_every_way(folder: Path, content: bytes, suffix: str, packing: str) -> None:
    path = folder / f"input{suffix}{packing}"
    path.write_bytes(gzip.compress(content) if packing else content)
    way = len(content) % 4
    if way == 0 or suffix == ".cites":
        path.with_suffix(".content").write_bytes(content)
        checks.attempt_graph(path)
    elif way == 1:
        checks.attempt_vectors(path)
    elif way == 2:
        checks.attempt_labels(path)
        checks.attempt_graph(folder / "sound.txt", attributes=path)
    else:
        checks.attempt_graph(folder / "sound.txt", nodes=path)
        checks.attempt_graph(path)
    path.unlink()


def read_inputs(folder: Path, count: int, seed: int) -> None:
    """Read a number of random inputs; the seed decides them."""

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,  # a busy machine is not a mistake of a reader
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(contents, st.sampled_from(SUFFIXES), st.sampled_from(PACKINGS))
    def read(content, suffix, packing):
        read_every_way(folder, content, suffix, packing)

    read()


def test_random_inputs_end_in_sound_data_or_in_our_errors(folder):
    read_inputs(folder, 1000, seed=1)


@pytest.mark.slow
def test_very_many_random_inputs_end_in_sound_data_or_in_our_errors(folder):
    read_inputs(folder, 4_000, seed=2)


def damage(folder: Path, count: int, seed: int) -> None:
    """Read a number of damaged files in a new process."""
    program = [sys.executable, str(HERE / "reader_mutations.py"), str(folder), str(count), str(seed)]
    ended = subprocess.run(program, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert ended.returncode == 0, ended.stderr[-2000:]
    found = json.loads(ended.stdout)
    assert not found["failures"], found["failures"][0]
    outcomes = found["outcomes"].values()
    assert sum(sum(each.values()) for each in outcomes) == count
    assert all(each.get("refused") for each in outcomes if sum(each.values()) > 9), found["outcomes"]
    assert found["grown_mb"] < MOST_MB
    assert found["trial_mb"] < MOST_MB


def test_damaged_files_end_in_sound_data_or_in_our_errors(tmp_path):
    damage(tmp_path, 300, 1)


@pytest.mark.slow
def test_very_many_damaged_files_end_in_sound_data_or_in_our_errors(tmp_path):
    damage(tmp_path, 1000, 2)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("labels.txt", b"\xef\xbb\xbf\xe2\x80\xa8", "the label file is empty"),
        ("graph.txt", b"\n, ", "the graph file is empty"),
        # A slow expression, whose work grows with the square of the size, would take days for these.
        ("graph.txt", b"# p" + b"\n" * 5_000_000 + b"5\n", "the graph has no edges"),
        ("graph.txt", b"<!-- -->" * 500_000 + b"\n", "graph.txt:1"),
        ("vectors.npy", b"\x93NUMPY\x01\0\x06\0{'a':(", "vectors.npy"),
        ("vectors.csv", b"id,d0\nann,1\nbob,nan\n", "vector 2 holds NaN or infinity"),
        ("cut.parquet", b"PAR1 and no more", "its end is missing"),
    ],
)
def test_files_that_once_ended_in_foreign_errors(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    read = {"labels": checks.read_labels, "vectors": checks.Embedding.load}.get(name.split(".")[0], checks.read_graph)
    with pytest.raises(checks.BraneError, match=says):
        read(tmp_path / name)


def test_nested_lists_and_digits_of_other_scripts_are_no_ids_nor_numbers(folder, tmp_path):
    (tmp_path / "nested.jsonl").write_text('{"id": "ann", "x": [[1], []]}\n{"id": "bob", "x": [[2]]}\n')
    (tmp_path / "digits.csv").write_text("id,size\nann,\u0661\nbob,\u0662\n", encoding="utf-8")
    assert checks.attempt_graph(folder / "sound.txt", nodes=tmp_path / "nested.jsonl") == "read"
    assert checks.attempt_graph(folder / "sound.txt", nodes=tmp_path / "digits.csv") == "read"


def test_an_arrow_file_that_would_end_the_process_is_refused(tmp_path):
    """A compressed buffer begins with its full size; Polars allocates that memory, however large."""
    polars = pytest.importorskip("polars")
    path = tmp_path / "edges.arrow"
    names = [f"a name that is long enough {row % 7}" for row in range(500)]
    polars.DataFrame({"source": names, "target": names[::-1]}).write_ipc(path, compression="zstd")
    content = bytearray(path.read_bytes())
    for frame in re.finditer(re.escape(b"\x28\xb5\x2f\xfd"), bytes(content)):  # each zstd frame follows its size
        content[frame.start() - 8 : frame.start()] = (1 << 61).to_bytes(8, "little")
    path.write_bytes(content)
    with pytest.raises(checks.BraneError, match=r"cannot be read as Arrow .*write the file again"):
        checks.read_graph(path)
