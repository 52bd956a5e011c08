import re
from html.parser import HTMLParser

import pytest

from neural_brane.reproduce.report.page import write_report

FIGURES = ("clustering", "map", "dimension", "convergence", "pooling")


@pytest.fixture(scope="module")
def report(everything, drawn, tmp_path_factory):
    """The report of made-up results."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(everything, drawn, path, trainings=640)
    return path


def test_the_report_is_whole_and_needs_nothing_else(report):
    text = report.read_text(encoding="utf-8")
    HTMLParser().feed(text)
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', re.sub(r'xlink:href="#', '"', text))
    assert not re.search(r"@import|url\((?!#)", text)
    assert "$" not in text
    for words in ("5,509 nodes, the paper&#x27;s has 15,753", "3 runs", "paired t-test", "attribute baselines"):
        assert words in text
    assert text.count('class="best"') + text.count('first best"') >= 12


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
