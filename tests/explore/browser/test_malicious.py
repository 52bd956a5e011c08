"""Malicious names in a graph are shown as text: nothing runs, and the page keeps its layout."""

import re

import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.explore.opening import lay_out, open_view
from neural_brane.explore.server import write_static
from neural_brane.graph import AttributedGraph

ATTACKS = [
    "<script>document.title='broken'</script>",
    "<img src=x onerror=\"document.title='broken'\">",
    "</script><script>document.title='broken'</script>",
    "\"><svg onload=document.title='broken'>",
    "javascript:document.title='broken'",
    "{{constructor.constructor('document.title=1')()}}",
    "\x1b[2J\x1b]0;owned\x07 terminal",
    "x" * 10_000,
    "\u202egnitirw esrever\u202c",
    "שלום עולם مرحبا",
    "__proto__",
    "constructor",
    "=cmd|'/c calc'!A1",
    'quote " comma , line \n end',
]


@pytest.fixture
def view(tmp_path):
    names = ATTACKS + [f"plain {at}" for at in range(16)]
    edges = [(names[at], names[at + 1]) for at in range(len(names) - 1)]
    attributes = {name: [ATTACKS[at % len(ATTACKS)], "common"] for at, name in enumerate(names)}
    labels = {name: ATTACKS[at % 3] if at % 2 else "ordinary" for at, name in enumerate(names)}
    graph = AttributedGraph.from_edges(edges, attributes=attributes, labels=labels, ids=names, name=ATTACKS[0])
    vectors = np.random.default_rng(0).normal(size=(len(names), 5))
    Embedding(vectors, graph.ids).save(tmp_path / "v.npz")
    found = open_view([tmp_path / "v.npz"], graph)
    lay_out(found, "pca")
    return found


@pytest.mark.parametrize("kind", ["server", "file"])
@pytest.mark.parametrize("width", [390, 1280])
def test_names_that_attack_are_shown_as_text(view, serve, open_page, tmp_path, kind, width):
    if kind == "server":
        home = serve(view).address
    else:
        write_static(view, tmp_path / "map.html")
        home = (tmp_path / "map.html").as_uri()
    opened = open_page(home, width)
    page = opened.page
    for attack in ATTACKS:
        page.fill("#search-text", attack.split("\n")[0][:60].strip())
        page.press("#search-text", "Enter")
        text = re.sub("[\x00-\x1f\u202a-\u202e]", "\u241b", attack)
        expected = text if len(text) <= 300 else f"{text[:300]}…"
        page.wait_for_function("text => document.getElementById('node-id')?.textContent === text", arg=expected)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), attack
    assert page.locator("#left-out").is_visible() == (kind == "file")
    assert kind == "server" or "beyond the first 10" in page.inner_text("#left-out")
    assert page.title() == f"{ATTACKS[0]} · brane explore"
    assert page.locator("aside script, aside img, aside svg, header script, header img, .map svg").count() == 0
    page.fill("#search-text", "common")
    page.locator("#search-found h3:has-text('Attributes') + .found", has_text="common").click()
    page.wait_for_selector("#selected")
    assert sorted(opened.exported_ids()) == sorted(view.nodes.ids.tolist())
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    opened.check()
