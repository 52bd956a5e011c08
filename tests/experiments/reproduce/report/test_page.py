import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from neural_brane.experiments.reproduce.page import write_report
from neural_brane.experiments.reproduce.plan import COLUMNS, LINKED

FIGURES = ("clustering", "map", "dimension", "convergence", "pooling")


@pytest.fixture(scope="module")
def report(everything, drawn, tmp_path_factory):
    """Return the path of a report of made-up results."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(everything, drawn, path, trainings=640)
    return path


def test_the_report_is_whole_and_needs_nothing_else(report):
    text = report.read_text(encoding="utf-8")
    HTMLParser().feed(text)
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', re.sub(r'xlink:href="#', '"', text))
    assert not re.search(r"@import|url\((?!#)", text)
    assert "$" not in text
    for words in ("5,509 nodes, the paper&#x27;s version 15,753", "3 runs", "paired t-test", "attribute baselines"):
        assert words in text
    assert text.count('class="best"') + text.count('first best"') >= 12


def cells_of(text, section):
    """Return the words of every cell in a section's first table, by row."""
    table = text.split(f'<section id="{section}">')[1].split("<tbody>")[1].split("</tbody>")[0]
    return [
        [re.sub(r"<[^>]+>", " ", cell).split() for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)]
        for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
    ]


def test_the_main_table_has_a_row_for_each_method_and_a_column_for_each_graph_and_share(report, everything):
    rows = {" ".join(row[0]): row[1:] for row in cells_of(report.read_text(encoding="utf-8"), "classification")}
    assert len(rows) == len(COLUMNS)
    assert {len(row) for row in rows.values()} == {5 * 3}
    (tadw,) = (row for name, row in rows.items() if name.startswith("TADW"))
    cells = everything.find("classification", "macro_f1", column="tadw", dataset="citeseer")
    for shown, one in zip(tadw, cells, strict=False):
        assert shown[0] == f"{one.mean:.4f}†".removeprefix("0")
    (nnmf,) = (row for name, row in rows.items() if name.startswith("NNMF"))
    assert not any("†" in shown[0] for shown in nnmf)
    assert sum(shown == ["-"] for row in rows.values() for shown in row) == 3 * (len(COLUMNS) - 3)


def test_how_the_default_was_chosen_stands_below_every_table_that_shows_it(report):
    text = report.read_text(encoding="utf-8")
    for output in ("classification", "clustering", "links"):
        section = text.split(f'<section id="{output}">')[1].split("</section>")[0]
        assert section.count("chosen on ten known graphs") == 1


def test_clusters_and_links_have_tables(report):
    text = report.read_text(encoding="utf-8")
    clusters, links = cells_of(text, "clustering"), cells_of(text, "links")
    assert len(clusters) == len(COLUMNS)
    assert {len(row) for row in clusters} == {1 + 5 * 3}
    assert len(links) == len(LINKED)
    assert {len(row) for row in links} == {1 + 4 * 2}
    assert all(score != ["-"] for row in links for score in row)  # every method has both scores


def test_seconds_say_where_they_were_measured(report):
    text = report.read_text(encoding="utf-8")
    assert "<b>A</b> Abacus 3000, 2 cores, 8 GB" in text
    assert cells_of(text, "costs")[0][1][1:] == ["A,", "one", "core"]


def test_how_it_was_tuned_and_how_defaults_were_chosen_are_told(report, everything, drawn, tmp_path):
    text = report.read_text(encoding="utf-8")
    assert "a fixed 20% of the labelled nodes" in text
    assert "benchmarks/defaults.py --choose" in text
    write_report(replace(everything, tuning=0.0), drawn, tmp_path / "old.html", trainings=1)
    assert "labels that are predicted here" in (tmp_path / "old.html").read_text(encoding="utf-8")


def test_what_is_in_the_data_cannot_break_the_page(fill, tmp_path):
    results = fill(["classification"], ["reed98"], runs=2)
    results.failures.append({"method": "<b>", "dataset": "x&y", "seed": 0, "failure": "<script>alert(1)</script>"})
    write_report(results, {}, tmp_path / "r.html", trainings=1)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_the_report_in_a_browser(report, browser):
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    complaints, requests = [], []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(report.as_uri())
    assert complaints == []
    assert requests == [report.as_uri()]
    for name in FIGURES:
        box = page.locator(f"#{name} svg").bounding_box()
        assert box["width"] > 400
        assert box["height"] > 200
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for wide in page.locator("#classification .scroll").all():
        assert wide.evaluate("box => box.scrollWidth <= box.clientWidth"), "a table does not fit the page"


def test_a_click_sorts(report, browser):
    page = browser.new_page()
    page.goto(report.as_uri())

    def column():
        cells = page.locator("#costs tbody tr td:nth-child(2)").all()
        return [float(cell.get_attribute("data-value")) for cell in cells]

    head = page.locator("#costs th[data-sort]").nth(1)
    before = column()
    head.click()
    assert column() == sorted(before, reverse=True)
    head.press("Enter")
    assert column() == sorted(before)
    assert head.get_attribute("aria-sort") == "ascending"
    assert page.locator("table").count() == page.locator("table:has(th[data-sort])").count()
