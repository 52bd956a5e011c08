from neural_brane.experiments.page import Head, number, settings, table, text


def test_cells_carry_what_they_are_sorted_by_and_text_cannot_break_the_page():
    found = table([Head("name", "text"), Head("share")], [[text("<b>"), number(0.25, "25 %", "best")]])
    assert '<th scope="col" data-sort="text" class="text ">name</th>' in found
    assert '<td class="text ">&lt;b&gt;</td><td data-value="0.25" class="best">25 %</td>' in found
    assert number(None, "-") == '<td data-value="" class="">-</td>'


def test_parameters_in_a_line():
    assert settings({"dim": 8, "tolerance": None, "recipe": "paper"}) == "dim = 8, recipe = paper"
