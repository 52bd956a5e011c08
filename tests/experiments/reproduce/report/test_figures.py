import re
from xml.etree import ElementTree

from neural_brane.experiments.reproduce.figures import draw_all


def test_every_figure_is_drawn_as_png_and_svg_and_the_same_each_time(everything, drawn, tmp_path):
    assert list(drawn) == ["clustering", "map", "dimension", "convergence", "pooling"]
    again = draw_all(everything, tmp_path)
    for name, path in drawn.items():
        ElementTree.parse(path)
        assert path.read_bytes() == again[name].read_bytes()
        assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_a_figure_without_data_is_not_drawn(fill, tmp_path):
    assert list(draw_all(fill(["pooling"], ["reed98"]), tmp_path)) == ["pooling"]


def test_identifiers_of_two_figures_do_not_meet(fill, tmp_path):
    drawn = draw_all(fill(["dimension", "pooling"], ["reed98"]), tmp_path)
    used = [set(re.findall(r"url\(#(\w+)\)", path.read_text())) for path in drawn.values()]
    assert used[0]
    assert used[0].isdisjoint(used[1])
