"""Files of vectors from other programs are refused if their data lie in another file or do not fit together."""

import sys

import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.errors import DependencyError, EmbeddingError
from neural_brane.files.storage import atomic_together
from neural_brane.files.vectors.formats import VectorFile


def test_a_format_whose_package_is_missing_is_refused_before_the_work(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(DependencyError, match=r"pip install 'neural-brane\[h5ad\]'"):
        VectorFile(tmp_path / "v.h5ad")


def test_hdf5_that_points_to_another_file_is_refused(tmp_path):
    h5py = pytest.importorskip("h5py")
    Embedding(np.eye(2), ["a", "b"]).save(tmp_path / "secret.h5ad")
    with h5py.File(tmp_path / "v.h5ad", "w") as file:
        file["X"] = h5py.ExternalLink("secret.h5ad", "X")
        file["obs/_index"] = np.array(["a", "b"], dtype=object)
    with pytest.raises(EmbeddingError, match=r"v\.h5ad: .*array"):
        Embedding.load(tmp_path / "v.h5ad")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("projector_config.pbtxt", 'tensor_path: "../v.tsv" metadata_path: "metadata.tsv"', r"'\.\./v\.tsv'.*folder"),
        ("projector_config.pbtxt", 'tensor_path: "vectors.tsv"', "metadata_path"),
        ("projector_config.pbtxt", 'tensor_path: "no.tsv" metadata_path: "metadata.tsv"', r"'no\.tsv'.*not exist"),
        ("metadata.tsv", "a\n", r"vectors\.tsv has more lines than .*metadata\.tsv"),
        ("metadata.tsv", "a\nb\nc\n", r"metadata\.tsv has more lines than .*vectors\.tsv"),
        ("provenance.json", "[]", r"provenance\.json: .*JSON"),
    ],
)
def test_an_incomplete_projector_is_refused(name, text, message, tmp_path):
    Embedding(np.eye(2), ["a", "b"]).save(tmp_path / "v.projector")
    (tmp_path / "v.projector" / name).write_text(text)
    with pytest.raises(EmbeddingError, match=message):
        Embedding.load(tmp_path / "v.projector")


def test_files_that_belong_together_are_all_replaced_or_none(tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    with atomic_together(paths) as drafts:
        for draft in drafts:
            draft.write_text("old")

    def fail():
        with atomic_together(paths) as drafts:
            drafts[0].write_text("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [path.read_text() for path in paths] == ["old", "old"]
    assert sorted(tmp_path.iterdir()) == paths
