import numpy as np
import polars
import pytest

from neural_brane.embedding import Embedding
from neural_brane.errors import EmbeddingError
from neural_brane.files.vectors.formats import VectorFile, read_vectors


def test_parquet_has_one_column_of_arrays(tmp_path):
    VectorFile(tmp_path / "v.parquet").write([5, 6], [np.eye(2)], dim=2)
    found = polars.read_parquet(tmp_path / "v.parquet")
    assert found.schema == {"id": polars.Int64, "vector": polars.Array(polars.Float32, 2)}
    assert found.to_dict(as_series=False) == {"id": [5, 6], "vector": [[1.0, 0.0], [0.0, 1.0]]}


def test_the_suffix_columns_parquet_writes_one_column_per_number(tmp_path):
    VectorFile(tmp_path / "v.columns.parquet").write([5, 6], [np.eye(2)], dim=2)
    assert polars.read_parquet(tmp_path / "v.columns.parquet").to_dict(as_series=False) == {
        "id": [5, 6],
        "d0": [1.0, 0.0],
        "d1": [0.0, 1.0],
    }


def test_plain_columns_are_also_read_from_a_file_named_parquet(tmp_path):
    Embedding(np.eye(2), ["a", "b"], {"method": "earlier"}).save(tmp_path / "v.columns.parquet")
    (tmp_path / "v.columns.parquet").rename(tmp_path / "v.parquet")
    found = Embedding.load(tmp_path / "v.parquet")
    assert (found.ids.tolist(), found["b"].tolist()) == (["a", "b"], [0, 1])
    assert found.provenance == {"method": "earlier"}


@pytest.mark.parametrize(
    "kind", [polars.List(polars.Float64), polars.Array(polars.Float64, 2), polars.List(polars.Int8)]
)
def test_lists_of_other_programs_are_read_and_other_columns_ignored(kind, tmp_path):
    vectors = polars.Series("embedding", [[1, 2], [3, 4]], dtype=kind)
    polars.DataFrame([polars.Series("id", ["a", "b"]), polars.Series("town", ["x", "y"]), vectors]).write_parquet(
        tmp_path / "v.parquet"
    )
    assert read_vectors(tmp_path / "v.parquet").vectors.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"vector": [[1.0], [1.0, 2.0]]}, "column 'vector'.* 1 to 2 numbers"),
        ({"vector": [[1.0], None]}, "column 'vector'.*missing"),
        ({"vector": [[1.0], [None]]}, "column 'vector'.*missing"),
        ({"vector": [["x"], ["y"]]}, r"column 'vector'.*List\(String\).*numbers"),
        ({"vector": [[], []]}, r"column 'vector'.*List\(Null\).*numbers"),
        ({"a": [[1.0], [1.0]], "b": [[1.0], [1.0]]}, "columns 'a', 'b'"),
    ],
)
def test_columns_that_are_no_vectors_are_refused(columns, message, tmp_path):
    polars.DataFrame({"id": [1, 2], **columns}).write_parquet(tmp_path / "v.parquet")
    with pytest.raises(EmbeddingError, match=message):
        read_vectors(tmp_path / "v.parquet")
