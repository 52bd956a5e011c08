import numpy as np
import polars

from neural_brane.io.vectors import VectorFile


def test_parquet_has_plain_columns(tmp_path):
    VectorFile(tmp_path / "v.parquet").write([5, 6], [np.eye(2)], dim=2)
    assert polars.read_parquet(tmp_path / "v.parquet").to_dict(as_series=False) == {
        "id": [5, 6],
        "d0": [1.0, 0.0],
        "d1": [0.0, 1.0],
    }
