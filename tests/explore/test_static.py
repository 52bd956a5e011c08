import base64
import json
import re
import zlib

import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.errors import ParameterError
from neural_brane.explore import server as static
from neural_brane.explore.opening import lay_out, open_view
from neural_brane.explore.server import check_size, write_static


def page_of(view, folder):
    write_static(view, folder / "page.html")
    return (folder / "page.html").read_text(encoding="utf-8")


def data_of(page):
    found = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)[1])
    return {asked: zlib.decompress(base64.b64decode(text)) for asked, text in found.items()}


def test_the_file_needs_nothing_else_and_forbids_the_rest(small_view, tmp_path):
    page = page_of(small_view, tmp_path)
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', page)
    assert "default-src 'none'" in page
    assert 'src="main.js"' not in page
    modules = json.loads(re.search(r'<script type="importmap">(.*?)</script>', page, re.S)[1])["imports"]
    for address in modules.values():
        code = base64.b64decode(address.split(",", 1)[1]).decode()
        assert all(name in modules for name in re.findall(r'from "([\w./-]+\.js)"', code))


def test_the_file_holds_what_the_server_answers_about_all_nodes(small_view, unpack, tmp_path):
    data = {asked: unpack(content) for asked, content in data_of(page_of(small_view, tmp_path)).items()}
    assert "nearest" in data.pop("about?")["left_out"]
    assert len(data) == 3 + 4 + 3  # names and lists, colours, one run with its map
    for asked, found in data.items():
        name, _, query = asked.partition("?")
        expected = small_view.answer(name, dict(part.split("=") for part in query.split("&") if part))
        assert found.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_array_equal(found[key], value.ravel() if isinstance(value, np.ndarray) else value)


def test_names_cannot_end_the_element_that_holds_them(tmp_path, unpack):
    names = ["</script><script>alert(1)</script>", "<!--", "b"]
    Embedding(np.eye(3), names).save(tmp_path / "v.npz")
    view = open_view([tmp_path / "v.npz"])
    lay_out(view, "pca")
    page = page_of(view, tmp_path)
    assert page.count("</script>") == 3
    assert unpack(data_of(page)["names?"])["ids"] == names


def test_what_is_too_large_for_a_file_is_refused(small_view, monkeypatch):
    check_size(small_view)
    monkeypatch.setattr(static, "MOST_NODES", 11)
    with pytest.raises(ParameterError, match="12 nodes"):
        check_size(small_view)


def test_the_file_is_the_same_again(small_view, tmp_path):
    write_static(small_view, tmp_path / "a.html")
    write_static(small_view, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
