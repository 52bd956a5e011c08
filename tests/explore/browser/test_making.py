"""The page while t-SNE is being computed."""

import numpy as np

from neural_brane.explore.opening import lay_out, open_view


def test_the_page_shows_how_far_it_is_and_then_the_better_map(small_file, small_graph, serve, open_page):
    view = open_view([small_file], small_graph)
    lay_out(view, "pca")
    states = [{"layout": "tsne", "words": "w", "share": share} for share in (0.0, 0.34, 0.67)]

    def making():
        if len(states) > 1:
            return states.pop(0)
        if "tsne" not in view.runs[0].points:
            view.runs[0].add_layout("tsne", np.random.default_rng(0).normal(size=(12, 2)))
        return None

    server = serve(view)
    server.making = making
    opened = open_page(server.address)
    page = opened.page
    page.wait_for_selector("#making:not([hidden])")
    assert "34 %" in page.inner_text("#making") or "0 %" in page.inner_text("#making")
    page.wait_for_selector("#layout")
    page.wait_for_function("document.getElementById('layout').value === 'tsne'")
    assert page.locator("#making").is_hidden()
    page.wait_for_function("location.hash.includes('map=tsne')")
    page.select_option("#layout", "pca")
    page.wait_for_function("location.hash.includes('map=pca')")
    opened.check()
