import re
from html.parser import HTMLParser

import pytest

from neural_brane.evaluate.labelled import Repeats
from neural_brane.experiments.compare import Standing, write_comparison


@pytest.fixture(scope="module")
def page(standing, comparison, tmp_path_factory):
    """Return the path of the page of an invented comparison."""
    methods = ("neural-brane", "propagated-attributes", "smoothed-attributes", "deepwalk")
    found = comparison(
        classify=[standing("classify", name, *(0.8 - at / 9 + run / 99 for run in range(3)), seconds=40 - at)
                  for at, name in enumerate(methods)],
        link=[standing("link", methods[0], 0.90, 0.91, 0.92, scorer_auc=Repeats((0.95, 0.96, 0.95))),
              standing("link", methods[1], 0.95, 0.95, 0.94, scorer_auc=None),
              Standing("pte", failure="<b>no</b> attributes & " + "a long reason " * 9)],
        notes=("left out: graphsage",),
    )  # fmt: skip
    path = tmp_path_factory.mktemp("page") / "compare.html"
    write_comparison(found, path)
    return path


def test_the_page_is_whole_and_needs_nothing_else(page):
    text = page.read_text(encoding="utf-8")
    HTMLParser().feed(text)
    assert not re.findall(r'(?:src|href)="(?!#|data:)[^"]*"', text)
    assert not re.search(r"@import|url\(|https?://", text)
    assert "$" not in text
    for words in (
        "Take neural-brane for classes", "left out: graphsage", "0123456789abcdef", "Abacus 3000", "numpy 2.0.0",
        "dim = 8", "AUC by link scorer", "≈ propagated-attributes", "95 % confidence interval", "Ranked by the better",
    ):  # fmt: skip
        assert words in text, words


def test_what_failed_is_a_row_and_cannot_break_the_page(page):
    text = page.read_text(encoding="utf-8")
    assert "<b>no</b>" not in text
    assert text.count("&lt;b&gt;no&lt;/b&gt; attributes &amp; a long reason") == 1
    assert text.count('<rect class="bar') == 4 + 2


def test_a_method_without_a_score_has_an_empty_cell(page):
    links = page.read_text(encoding="utf-8").split('<section id="link">')[1]
    row = next(row for row in links.split("<tbody>")[1].split("<tr>") if "propagated-attributes" in row)
    assert '<td data-value="" class="">-</td>' in row


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_in_a_browser(page, browser, width):
    view = browser.new_page(viewport={"width": width, "height": 900})
    complaints, requests = [], []
    view.on("console", lambda message: complaints.append(message.text))
    view.on("pageerror", lambda error: complaints.append(str(error)))
    view.on("request", lambda request: requests.append(request.url))
    view.goto(page.as_uri())
    assert complaints == []
    assert requests == [page.as_uri()]
    assert view.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for chart in view.locator("svg.bars").all():
        assert chart.bounding_box()["width"] > 0.75 * min(width, 720)
        lengths = [bar.bounding_box()["width"] for bar in chart.locator("rect.bar").all()]
        assert lengths == sorted(lengths, reverse=True)
        assert chart.locator("text").first.evaluate("text => getComputedStyle(text).fontSize") == "13px"
