"""The page of thirteen thousand packages, from a server and from one file."""

import json

import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.explore.server import write_static

pytestmark = pytest.mark.filterwarnings("ignore:.*column 'kind' and the direction:neural_brane.errors.ReadingWarning")


@pytest.fixture(params=["server", "file"])
def opened(request, debian_view, serve, open_page, tmp_path_factory):
    if request.param == "server":
        home = serve(debian_view).address
    else:
        path = tmp_path_factory.getbasetemp() / "debian.html"
        if not path.exists():
            write_static(debian_view, path)
            assert path.stat().st_size < 4e6
        home = path.as_uri()
    found = open_page(home)
    yield found
    found.check()


def test_search_card_lasso_colour_and_export(opened, debian_view):
    page, view = opened.page, debian_view
    assert page.inner_text("#facts").startswith("13,128 nodes · 31,663 edges")
    embedding = Embedding.load(view.runs[0].path)
    page.fill("#search-text", "python3-numpy")
    page.wait_for_selector(".found")
    page.press("#search-text", "Enter")
    page.wait_for_selector("#node-id")
    assert page.inner_text("#node-id") == "python3-numpy"
    nearest = embedding.nearest("python3-numpy", k=10)
    assert page.locator("table.nearest td:first-child .name").all_inner_texts() == [node for node, _ in nearest]
    row = embedding.row("python3-numpy")
    page.wait_for_selector(f".map[data-edges='{int(np.diff(view.nodes.adjacency.indptr)[row])}']")
    had, links = view.nodes.attributes_of(np.array([row])), view.nodes.links_of(np.array([row]))
    names = [view.nodes.attribute_names[int(column)] for column in had["columns"]]
    assert page.locator("#node .tag .name").all_inner_texts() == names
    assert page.locator("table.neighbours .name").all_inner_texts() == view.nodes.ids[links["rows"][:60]].tolist()
    page.keyboard.press("Escape")
    page.keyboard.press("0")
    page.keyboard.press("l")
    corners, inside = opened.clear_box(view, opened.lonely(view, 30), 50)
    opened.lasso(corners)
    page.wait_for_selector("#outstanding")
    assert sorted(opened.exported_ids()) == sorted(view.nodes.ids[sorted(inside)].tolist())
    assert len(json.loads(opened.exported("json"))) == len(inside)
    shown = page.locator("#outstanding td:first-child .name").all_inner_texts()
    assert shown == opened.typical(view, sorted(inside))
    page.select_option("#colour", "degree")
    page.wait_for_selector("#legend h2:has-text('number of neighbours')")
    assert sum(int(one.replace(",", "")) for one in page.locator(".legend .number").all_inner_texts()) == 13128
    page.locator(".legend li button.plain").first.click()
    page.wait_for_selector("#shown")
