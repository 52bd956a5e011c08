"""Vectors are written to every format and read back: the ids keep their type, and the numbers keep every bit."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from neural_brane.cli.app import app
from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError
from neural_brane.files.vectors.formats import FORMATS

PLAIN = {
    "integers": [0, 7, -3, 2**63 - 1, -(2**63)],
    "leading zeros": ["007", "7", "07", "+7", "-0"],
    "beyond 64 bits": ["18446744073709551615", "9223372036854775808", "1", "2", "3"],
    "numbers that are names": ["1e5", "nan", "inf", "0x10", "1_000"],
    "unicode": ["módulo", "節点", "Ωmega", "🙂", "e\u0301"],
    "quotes": ['"', "'", '"a"', 'a"b', '""'],
    "commas": [",", "a,b", ",,", ";", '",'],
    "names of columns": ["id", "d0", "d1", "true", "null"],
    "signs": ["#a", "\\n", "\ufeff", "%s", "{}"],
    "mixed": ["1", "a", "2", "b", "3"],
}
WITH_SPACES = {
    "spaces": ["New York", " a", "a ", "a  b", "1 2"],
    "other blanks": ["a\u00a0b", "\u3000", "a\u2028b", "a\x0bb", "a\x85b"],
}
WITH_LINES = {
    "lines and tabs": ["a\nb", "a\r\nb", "\t", "a\rb", "\n"],
    "nothing": ["", " ", "a", "b", "c"],
    "controls": ["\x1b[2J", "\x01x", "\x7f", "a\x1cb", "\t\n"],
}
VECTORS = np.array(
    [
        [0.1, -0.0, 1 / 3],
        [np.finfo(np.float32).max, np.finfo(np.float32).smallest_subnormal, np.finfo(np.float32).tiny],
        [16777217, 1e-45, -1e30],
        [np.pi, 123456.789, 2**-126],
        [0.30000001, 9.999999e9, 1],
    ],
    dtype=np.float32,
)


@pytest.mark.parametrize("suffix", FORMATS)
def test_vectors_are_read_back_unchanged_or_their_ids_are_refused(suffix, tmp_path):
    """Every format stores plain ids unchanged; each id that it does not accept raises an error."""
    path, accepts = tmp_path / f"v{suffix}", FORMATS[suffix].accepts
    assert all(accepts(str(node)) for ids in PLAIN.values() for node in ids)
    for ids in (PLAIN | WITH_SPACES | WITH_LINES).values():
        if all(accepts(str(node)) for node in ids):
            Embedding(VECTORS[: len(ids)], ids).save(path)
            again = Embedding.load(path)
            assert again.ids.tolist() == ids
            assert again.vectors.tobytes() == VECTORS[: len(ids)].tobytes()
        for node in ids:
            if not accepts(str(node)):
                with pytest.raises(EmbeddingError, match="refuses ids"):
                    Embedding([[1.0]], [node]).save(path)


def test_comma_separated_vectors_are_evaluated(tmp_path):
    Embedding(np.eye(6)[:, :2], ["a,1", "b", "c", "d", "e", "f"]).save(tmp_path / "v.csv")
    (tmp_path / "labels.txt").write_text("b\tone\nc\ttwo\nd\ttwo\ne\tone\nf\tone\n")
    arguments = ["evaluate", str(tmp_path / "v.csv"), "--labels", str(tmp_path / "labels.txt")]
    result = CliRunner().invoke(app, [*arguments, "--task", "clustering", "--starts", "1"])
    assert result.exit_code == 0
    assert "such as a,1" in result.stdout


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        (",0,1\nx,1,2\ny,3,4\n", ["x", "y"]),  # pandas writes an index in this form
        ('"id","a","b"\r\n"x,1",1,2\r\n"7",3,4\r\n', ["x,1", "7"]),
        ("7,1,2\n8,3,4", [7, 8]),
    ],
)
def test_comma_separated_tables_of_other_programs_are_read(content, ids, tmp_path):
    (tmp_path / "v.csv").write_text(content, newline="")
    again = Embedding.load(tmp_path / "v.csv")
    assert (again.ids.tolist(), again.vectors.tolist()) == (ids, [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"v\.csv: is empty"),
        ("id,d0\na,1\nb,1,2\n", r"v\.csv:3: 2 numbers.*'b'.* 1"),
        ('id,d0\n"a"b,1\n', r"v\.csv:2: .*quote"),
        ('id,d0\n"a,1\n', r"v\.csv:2: .*quote"),
    ],
)
def test_a_damaged_comma_separated_table_is_described(content, message, tmp_path):
    (tmp_path / "v.csv").write_text(content)
    with pytest.raises(EmbeddingError, match=message):
        Embedding.load(tmp_path / "v.csv")
