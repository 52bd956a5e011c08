import base64
import json
import re

import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.errors import ParameterError
from neural_brane.explore import static
from neural_brane.explore.opening import lay_out, open_view
from neural_brane.explore.static import check_size, one_file, write_static


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])


def array(data, name, kind):
    return np.frombuffer(base64.b64decode(data["arrays"][name]), kind)


def test_the_file_needs_nothing_else_and_forbids_the_rest(small_view):
    page = one_file(small_view)
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', page)
    assert "default-src 'none'" in page
    assert 'src="main.js"' not in page
    modules = json.loads(re.search(r'<script type="importmap">(.*?)</script>', page, re.S)[1])["imports"]
    for address in modules.values():
        code = base64.b64decode(address.split(",", 1)[1]).decode()
        assert all(name in modules for name in re.findall(r'from "([\w./-]+\.js)"', code))


def test_the_data_is_that_of_the_library(small_view, small_file):
    data = data_of(one_file(small_view))
    embedding = Embedding.load(small_file)
    rows = array(data, "nearest_rows_0", "<u4").reshape(12, -1)
    cosines = array(data, "nearest_cosines_0", "<f4").reshape(12, -1)
    scores = array(data, "nearest_scores_0", "<f4").reshape(12, -1)
    for row, node in enumerate(embedding.ids.tolist()):
        found = list(zip(embedding.ids[rows[row]].tolist(), cosines[row].tolist(), strict=True))
        assert found == embedding.nearest(node, k=10)
        np.testing.assert_allclose(scores[row], embedding.score([(node, other) for other, _ in found]), rtol=1e-5)
    assert data["names"]["ids"] == embedding.ids.tolist()
    np.testing.assert_array_equal(array(data, "points_0_pca", "<f4"), small_view.points(0, "pca").ravel())
    assert "nearest" in data["about"]["left_out"]


def test_names_cannot_end_the_element_that_holds_them(tmp_path):
    names = ["</script><script>alert(1)</script>", "<!--", "b"]
    Embedding(np.eye(3), names).save(tmp_path / "v.npz")
    view = open_view([tmp_path / "v.npz"])
    lay_out(view, "pca")
    page = one_file(view)
    assert page.count("</script>") == 3
    assert data_of(page)["names"]["ids"] == names


def test_what_is_too_large_for_a_file_is_refused(small_view, monkeypatch):
    check_size(small_view)
    monkeypatch.setattr(static, "MOST_NODES", 11)
    with pytest.raises(ParameterError, match=r"12 nodes with .* are too many for one file.*without --html"):
        check_size(small_view)


def test_the_file_is_the_same_again(small_view, tmp_path):
    write_static(small_view, tmp_path / "a.html")
    write_static(small_view, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
