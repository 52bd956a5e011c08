from html.parser import HTMLParser

from neural_brane.experiments.page import Section, write_page


def test_a_page_lists_its_sections_and_leaves_out_empty_ones(tmp_path):
    path = tmp_path / "page.html"
    sections = [Section("first", "One & only", "<p>body</p>"), Section("second", "Nothing", "")]
    write_page(path, title="a < b", lead="<em>lead</em>", sections=sections, tiles=[("3", "things")])
    text = path.read_text(encoding="utf-8")
    HTMLParser().feed(text)
    assert "<title>a &lt; b</title>" in text
    assert "<em>lead</em>" in text
    assert '<a href="#first">One &amp; only</a>' in text
    assert '<section id="first"><h2>One &amp; only</h2><p>body</p></section>' in text
    assert "Nothing" not in text
    assert 'class="warning"' not in text
    assert '<div class="tile"><b>3</b><span>things</span></div>' in text


def test_a_warning_is_text(tmp_path):
    write_page(tmp_path / "page.html", title="", lead="", sections=[], warning="left out: <b>")
    assert '<p class="warning">left out: &lt;b&gt;</p>' in (tmp_path / "page.html").read_text(encoding="utf-8")
