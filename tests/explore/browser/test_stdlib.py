"""The page of the standard library's modules shows the results of the library."""

import json

import numpy as np
import pytest

from neural_brane.embedding import Embedding


@pytest.fixture
def opened(stdlib_view, serve, open_page):
    server = serve(stdlib_view)
    found = open_page(server.address)
    yield found
    found.check()


def ids_of(page, table):
    return [one.inner_text() for one in page.locator(f"{table} td:first-child .name").all()]


def test_the_page_opens_with_names_counts_and_legend(opened, stdlib_view):
    page = opened.page
    assert page.inner_text("#facts") == "554 nodes · 2,761 edges · 3,140 attributes"
    classes, codes = stdlib_view.nodes.classes
    counts = np.bincount(codes, minlength=len(classes))
    shown = [one.inner_text().split("\n")[-2:] for one in page.locator(".legend button.group").all()]
    assert [(name, int(number)) for name, number in shown][: len(classes)] == list(
        zip(classes.tolist(), counts[: len(classes)].tolist(), strict=True)
    )
    page.wait_for_selector(".region")
    assert page.locator(".region").count() > 3
    coarse = page.locator(".region").all_inner_texts()
    for _ in range(5):
        page.click("#nearer")
    assert page.get_attribute(".map", "data-level") == "2"
    assert page.locator(".region").all_inner_texts() != coarse


def test_search_click_edges_and_pair(opened, stdlib_view):
    page, view = opened.page, stdlib_view
    embedding = Embedding.load(view.runs[0].path)
    page.fill("#search-text", "json")
    page.wait_for_selector(".found")
    assert page.locator(".found .name").first.inner_text() == "json"
    page.press("#search-text", "Enter")
    page.wait_for_selector("#node-id")
    assert page.inner_text("#node-id") == "json"
    assert page.inner_text("#node-label") == view.nodes.labels[embedding.row("json")]
    tables = page.locator("table.nearest")
    for number, run in enumerate(view.runs):
        nearest = Embedding.load(run.path).nearest("json", k=10)
        rows = tables.nth(number).locator("tr[data-row]").all()
        assert [one.locator(".name").inner_text() for one in rows] == [node for node, _ in nearest]
        assert [one.locator("td").nth(1).inner_text() for one in rows] == [f"{cosine:.2f}" for _, cosine in nearest]
    row = embedding.row("json")
    neighbours = view.nodes.links_of(np.array([row]))["rows"]
    assert sorted(ids_of(page, "table.neighbours")) == sorted(view.nodes.ids[neighbours].tolist())
    page.wait_for_selector(f".map[data-edges='{len(neighbours)}']")
    ink = "canvas => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean)"
    assert page.locator("canvas.lines").evaluate(ink)
    other = page.locator("table.neighbours tr").first
    name = other.locator(".name").inner_text()
    other.locator("button", has_text="⇄").click()
    page.wait_for_selector("#pair:not([hidden])")
    own, theirs = (view.nodes.attributes_of(np.array([one]))["columns"].tolist() for one in (row, embedding.row(name)))
    shared = [view.nodes.attribute_names[column] for column in own if column in theirs]
    assert page.locator("#pair-attributes .name").all_inner_texts() == shared
    assert f"{embedding.similarity('json', name):.2f}" in page.inner_text("#pair-alike")
    page.keyboard.press("Escape")
    page.wait_for_selector(".map[data-edges='0']")
    assert page.locator("#node-id").count() == 0


def test_a_click_and_the_pointer_show_the_node_under_it(opened, stdlib_view):
    page, view = opened.page, stdlib_view
    row = opened.lonely(view)
    page.mouse.move(*opened.place(view, row))
    page.wait_for_selector("#hover:not([hidden])")
    assert page.inner_text("#hover .name") == view.nodes.ids[row]
    degree = int(np.diff(view.nodes.adjacency.indptr)[row])
    page.wait_for_selector(f".map[data-edges='{degree}']")
    page.mouse.click(*opened.place(view, row))
    page.wait_for_selector("#node-id")
    assert page.inner_text("#node-id") == view.nodes.ids[row]
    page.mouse.move(5, 300)
    page.wait_for_selector("#hover", state="hidden")


def test_lasso_union_intersection_summary_and_export(opened, stdlib_view):
    page, view = opened.page, stdlib_view
    page.click("#lasso")
    spots = [opened.clear_box(view, opened.lonely(view, beyond), 60) for beyond in (20, 40)]
    (first, ours), (second, theirs) = spots
    assert ours
    assert theirs
    opened.lasso(first)
    page.wait_for_selector("#export-csv")
    ids = view.nodes.ids
    assert sorted(opened.exported_ids()) == sorted(ids[sorted(ours)].tolist())
    opened.lasso(second, key="Shift")
    page.wait_for_function(f"document.getElementById('selected').textContent.startsWith('{len(ours | theirs)} ')")
    assert sorted(opened.exported_ids()) == sorted(ids[sorted(ours | theirs)].tolist())
    page.wait_for_selector("#outstanding")
    assert ids_of(page, "#outstanding") == opened.typical(view, sorted(ours | theirs))
    classes, counts = np.unique(view.nodes.labels[sorted(ours | theirs)], return_counts=True)
    assert set(ids_of(page, "#classes")) == set(classes[np.argsort(-counts)][:15].tolist())
    written = json.loads(opened.exported("json"))
    assert [(one["id"], one["label"]) for one in written] == [
        (view.nodes.ids[row], view.nodes.labels[row]) for row in sorted(ours | theirs)
    ]
    opened.lasso(first, key="Alt")
    page.wait_for_function(f"document.getElementById('selected').textContent.startsWith('{len(ours)} ')")
    assert sorted(opened.exported_ids()) == sorted(ids[sorted(ours)].tolist())


def test_colour_filter_and_what_is_hidden_is_not_drawn(opened, stdlib_view):
    page, view = opened.page, stdlib_view
    page.select_option("#colour", "degree")
    page.wait_for_selector("#legend h2:has-text('number of neighbours')")
    numbers = [int(one.replace(",", "")) for one in page.locator(".legend .number").all_inner_texts()]
    assert sum(numbers) == 554
    names = page.locator(".legend .name").all_inner_texts()
    low, high = map(int, names[1].split(" to ")) if " to " in names[1] else [int(names[1])] * 2
    degrees = np.diff(view.nodes.adjacency.indptr)
    assert numbers[1] == ((degrees >= low) & (degrees <= high)).sum()
    page.select_option("#colour", "label")
    page.wait_for_selector("#legend h2:has-text('label')")
    row = opened.lonely(view)
    group = int(view.nodes.classes[1][row])
    x, y = opened.place(view, row)
    box = {"x": x - 2, "y": y - 2, "width": 4, "height": 4}
    drawn = page.screenshot(clip=box)
    page.locator(".legend button.group").nth(group).click()
    page.wait_for_selector("#shown")
    shown = 554 - int((view.nodes.classes[1] == group).sum())
    assert page.inner_text("#shown") == f"{shown} nodes shown"
    page.wait_for_timeout(300)
    assert page.screenshot(clip=box) != drawn
    page.locator(".legend li button.plain").nth(group).click()
    page.wait_for_function(f"document.getElementById('shown').textContent.startsWith('{554 - shown} ')")
    page.wait_for_timeout(300)
    assert page.screenshot(clip=box) == drawn


def test_colours_that_change_quickly_end_as_the_last_one(opened, stdlib_view):
    page = opened.page
    x, y = opened.place(stdlib_view, opened.lonely(stdlib_view))
    box = {"x": x - 2, "y": y - 2, "width": 4, "height": 4}
    drawn = page.screenshot(clip=box)
    for name in ("degree", "label") * 5:
        page.select_option("#colour", name)
    page.wait_for_selector("#legend h2:has-text('label')")
    page.wait_for_timeout(1000)
    assert page.screenshot(clip=box) == drawn


def test_an_attribute_is_found_coloured_and_selected(opened, stdlib_view):
    page, view = opened.page, stdlib_view
    page.keyboard.press("/")
    page.keyboard.type("asyncio")
    page.locator("#search-found h3:has-text('Attributes') + .found", has_text="asyncio").click()
    page.wait_for_selector("#selected")
    column = view.nodes.attribute_names.to_list().index("asyncio")
    rows = view.nodes.holders_of(column)["rows"]
    assert page.inner_text("#selected") == f"{len(rows)} nodes selected"
    assert opened.exported_ids() == view.nodes.ids[rows].tolist()
    assert page.locator(".legend .number").all_inner_texts() == [str(len(rows)), str(554 - len(rows))]


def test_two_files_side_by_side_and_toggled(opened, stdlib_view):
    page, view = opened.page, stdlib_view
    page.select_option("#second", "1")
    page.wait_for_function("document.querySelectorAll('.map').length === 2")
    assert page.locator(".map-title").all_inner_texts() == [run.name for run in view.runs]
    page.fill("#search-text", "zipfile")
    page.wait_for_selector(".found")
    page.press("#search-text", "Enter")
    page.wait_for_selector("#node-id")
    assert page.locator("table.nearest").count() == 2
    degree = int(np.diff(view.nodes.adjacency.indptr)[view.nodes.ids.tolist().index("zipfile")])
    page.wait_for_selector(f".map[data-edges='{degree}'] ~ .map[data-edges='{degree}']")
    page.select_option("#run", "1")
    page.wait_for_function("document.querySelectorAll('.map').length === 1")
    assert page.locator(".map-title").all_inner_texts() == [view.runs[1].name]


def test_the_address_brings_everything_back(opened, stdlib_view):
    page, view = opened.page, stdlib_view
    page.fill("#search-text", "json")
    page.wait_for_selector(".found")
    page.locator("#search-found .found", has_text="select all").click()
    page.wait_for_selector("#keep-name")
    page.fill("#keep-name", "all of json ~ & <b>")
    page.click("#keep")
    page.wait_for_selector("#kept")
    page.select_option("#colour", "degree")
    page.wait_for_selector("#legend h2:has-text('number of neighbours')")
    page.locator(".legend button.group").first.click()
    page.wait_for_selector("#shown")
    page.fill("#search-text", "json")
    page.wait_for_selector(".found")
    page.press("#search-text", "Enter")
    page.wait_for_selector("#node-id")
    page.wait_for_timeout(400)
    before = {part: page.inner_text(part) for part in ("#selected", "#kept", "#node-id", "#shown", ".legend")}
    regions = page.locator(".region").all_inner_texts()
    address = page.url
    page.reload()
    opened.wait()
    page.wait_for_selector("#kept")
    assert {part: page.inner_text(part) for part in before} == before
    assert "all of json ~ & <b>" in before["#kept"]
    page.wait_for_function(f"document.querySelectorAll('.region').length === {len(regions)}")
    assert page.locator(".region").all_inner_texts() == regions
    page.wait_for_timeout(400)
    assert page.url == address
    assert opened.exported_ids() == [node for node in view.nodes.ids.tolist() if "json" in node]


@pytest.mark.parametrize("address", ["#select=%%%&node=99999&run=7&colour=nonsense&hide=x", "#view=a,b,c&with=1"])
def test_an_address_that_makes_no_sense_does_no_harm(stdlib_view, serve, open_page, address):
    server = serve(stdlib_view)
    opened = open_page(server.address + address)
    assert opened.page.locator(".legend li").count() > 2
    assert opened.page.locator("#selection").is_hidden()


def test_a_server_that_has_ended_is_told(stdlib_view, serve, open_page):
    server = serve(stdlib_view)
    opened = open_page(server.address)
    opened.page.route("**/api/**", lambda route: route.abort())
    opened.page.fill("#search-text", "json")
    opened.page.press("#search-text", "Enter")
    opened.page.wait_for_selector("#notice:not([hidden])")
    assert "Start 'brane explore' again" in opened.page.inner_text("#notice")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen(stdlib_view, serve, open_page, scheme):
    server = serve(stdlib_view)
    opened = open_page(server.address, 390, 844, color_scheme=scheme)
    page = opened.page
    page.fill("#search-text", "asyncio")
    page.wait_for_selector(".found")
    page.press("#search-text", "Enter")
    page.wait_for_selector("#node-id")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.locator(".map").bounding_box()["width"] == 390
    opened.check()
