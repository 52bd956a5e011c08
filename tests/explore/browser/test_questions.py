"""The page's answers, from a server and from one file, equal the library's."""

import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.explore.server import write_static
from neural_brane.insight.groups import rank_typical


class Asked:
    """Call the page's questions; rows are those of the view."""

    def __init__(self, page, kind, view):
        self.page, self.view, self.rows = page, view, view.nodes.rows
        folder = "./" if kind == "server" else ""
        self.open = (
            f"const [{{Questions}}, {{openSource}}] = await Promise.all([import('{folder}questions.js'), "
            f"import('{folder}api.js')]); globalThis.asking ??= new Questions(openSource());"
        )

    def __call__(self, question, *given):
        plain = (
            "const plain = (value) => ArrayBuffer.isView(value) ? Array.from(value) : Array.isArray(value) "
            "? value.map(plain) : value && typeof value === 'object' "
            "? Object.fromEntries(Object.entries(value).map(([key, part]) => [key, plain(part)])) : value;"
        )
        ask = "return plain(await asking[question](...given));"
        return self.page.evaluate(
            f"async ([question, given]) => {{ {self.open} {plain} {ask} }}", [question, list(given)]
        )


@pytest.fixture(scope="module", params=["server", "file"])
def kind(request):
    return request.param


@pytest.fixture
def ask(kind, small_view, serve, open_page, tmp_path):
    if kind == "server":
        opened = open_page(serve(small_view).address)
    else:
        write_static(small_view, tmp_path / "map.html")
        opened = open_page((tmp_path / "map.html").as_uri())
    yield Asked(opened.page, kind, small_view)
    opened.check()


def test_the_page_answers_what_the_library_says(ask, small_view, small_graph, small_file):
    check_card(ask, small_graph, small_file)
    check_pair(ask, small_file)
    check_search(ask)
    check_summary(ask, small_view, small_graph)
    check_edges(ask, small_view)
    check_columns(ask)


def check_card(ask, graph, file):
    card = ask("card", ask.rows["cat"])
    assert (card["id"], card["label"], card["attribute_total"]) == ("cat", "town", 3)
    assert card["attributes"] == [["opera", 1], ["chess", 1], ["tea", 1]]
    assert [(one["id"], one["weight"]) for one in card["neighbours"]] == [("ann", 2.0), ("dan", 1.0), ("bob", 0.5)]
    embedding = Embedding.load(file)
    edges = {frozenset(graph.ids[list(ends)].tolist()) for ends in zip(*graph.adjacency.nonzero(), strict=True)}
    for node in ("ann", "kim"):
        nearest = ask("card", ask.rows[node])["nearest"][0]
        assert [(one["id"], one["cosine"]) for one in nearest] == embedding.nearest(node, k=10)
        assert [one["linked"] for one in nearest] == [{node, one["id"]} in edges for one in nearest]
    hovered = ask("hover", ask.rows["cat"])
    assert (hovered["id"], hovered["degree"], len(hovered["neighbours"])) == ("cat", 3, 3)
    assert ask("described", [ask.rows["cat"], ask.rows["kim"]]) == [["cat", "town"], ["kim", ""]]


def check_pair(ask, file):
    pair = ask("pair", ask.rows["ann"], ask.rows["cat"])
    assert set(pair["attributes"]) == {"chess", "opera"}
    assert pair["only"] == [0, 1]
    assert {one["id"] for one in pair["neighbours"]} == {"ann", "bob"}
    assert pair["linked"]
    embedding = Embedding.load(file)
    near, _ = embedding.nearest("ann", k=1)[0]
    pair = ask("pair", ask.rows["ann"], ask.rows[near])
    assert pair["cosines"] == [pytest.approx(dict(embedding.nearest("ann", k=11))[near], abs=1e-6)]


def check_search(ask):
    assert ask("search", " TE")["attributes"] == [["tea", 5]]
    assert ask("search", "CLUB")["labels"] == [["club", 5]]
    found = ask("search", "a")
    assert found["nodes"][0]["id"] == "ann"  # the shortest name that begins with the text
    assert found["node_total"] == sum("a" in name for name in ask.rows)
    for nothing in ("  ", "[.*"):
        assert ask("search", nothing) == {"nodes": [], "node_total": 0, "attributes": [], "labels": []}
    ids = ask.view.nodes.ids
    for kind, name, expected in [
        ("attribute", "rugby", {"gus", "hal", "kim"}),
        ("label", "club", {"gus", "hal", "ian", "joy", "leo"}),
        ("label", "nobody", set()),
        ("id", "AN", {"ann", "dan", "ian"}),
    ]:
        rows = ask("rows", kind, name)
        assert rows == sorted(rows)
        assert set(ids[rows]) == expected


def check_summary(ask, view, graph):
    chosen = ["ann", "bob", "cat", "dan", "gus"]
    summary = ask("summary", sorted(ask.rows[node] for node in chosen))
    assert summary["count"] == 5
    assert summary["classes"] == [["town", 4], ["club", 1]]
    assert summary["edges"] == graph.subgraph(chosen).edges
    part = np.array([node in chosen for node in graph.ids])
    had = graph.attributes.toarray() > 0
    best = rank_typical(had[part].sum(axis=0), 5, had.sum(axis=0), len(graph))
    assert [name for name, *_ in summary["attributes"]] == graph.attribute_names[best].tolist()
    assert summary["attributes"][0] == ["opera", 3, pytest.approx(12 / 5)]
    assert "tea" not in [name for name, *_ in summary["attributes"]]
    assert ask("summary", [])["count"] == 0


def check_edges(ask, view):
    pairs = np.reshape(ask("edges", sorted([ask.rows["ann"], ask.rows["bob"]])), (-1, 2))
    assert sorted(sorted(set(pair)) for pair in view.nodes.ids[pairs].tolist()) == [
        ["ann"], ["ann", "bob"], ["ann", "cat"], ["bob", "cat"], ["bob", "fay"]
    ]  # fmt: skip


def check_columns(ask):
    chess = ask("column", "attribute:chess")
    assert (chess["counts"], chess["values"][ask.rows["bob"]]) == ([4, 8], 0)
    beer = ask("column", "attribute:beer")
    assert (beer["kind"], beer["values"][ask.rows["joy"]]) == ("number", 2)
    with pytest.raises(Exception, match=r"node.*'golf'"):
        ask("column", "attribute:golf")
