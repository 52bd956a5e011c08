"""Take the screenshots of docs/look.md: the explorer with the graph stdlib, in a headless Chromium.

python scripts/explore_pictures.py
"""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any

from neural_brane import METHODS, NeuralBrane, load
from neural_brane.explore.opening import lay_out, open_view
from neural_brane.explore.server import Server

PICTURES = Path(__file__).parents[1] / "docs" / "_static"
FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
LASSO = ((0.62, 0.45), (0.92, 0.45), (0.92, 0.72), (0.62, 0.72), (0.62, 0.46))  # shares of the map's size


def make_server(folder: Path) -> Server:
    """Return a running server that shows a Neural-Brane model and vectors of the method `attributes`."""
    graph = load("stdlib")
    NeuralBrane(seed=0).fit(graph).save(folder / "neural-brane.brane")
    METHODS["attributes"](dim=150, seed=0).fit_transform(graph).save(folder / "attributes.npz")
    view = open_view([folder / "neural-brane.brane", folder / "attributes.npz"])
    lay_out(view, "pca")
    lay_out(view, "tsne")
    server = Server(view)
    threading.Thread(target=server.serve, daemon=True).start()
    return server


def open_page(browser: Any, address: str, *, width: int = 1280, height: int = 800, scheme: str = "light") -> Any:
    """Return the page after its map and the names on it are drawn."""
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(address)
    page.wait_for_selector("body[data-state=ready]")
    page.wait_for_selector(".region")
    return page


def show_node(page: Any, node: str) -> None:
    """Search for a node and wait until its card is complete."""
    page.fill("#search-text", node)
    page.press("#search-text", "Enter")
    page.wait_for_selector("table.suggested", timeout=60_000)
    page.evaluate("document.activeElement.blur()")


def draw_around(page: Any) -> None:
    """Select some nodes with the lasso."""
    page.click("#lasso")
    box = page.locator(".map").first.bounding_box()
    corners = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in LASSO]
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner, steps=8)
        page.wait_for_timeout(30)
    page.mouse.up()
    page.wait_for_selector("#outstanding")


def main() -> None:
    """Take all screenshots."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        address = make_server(Path(folder)).address
        browser = play.chromium.launch(executable_path=chromium, args=FLAGS)

        def keep(page: Any, name: str) -> None:
            page.mouse.move(2, 2)
            page.wait_for_timeout(600)
            page.screenshot(path=PICTURES / f"{name}.png")
            page.close()

        page = open_page(browser, address)
        keep(page, "explore")
        page = open_page(browser, address, scheme="dark")
        show_node(page, "zipfile")
        page.locator("table.nearest").first.scroll_into_view_if_needed()
        keep(page, "explore-node")
        page = open_page(browser, address)
        draw_around(page)
        keep(page, "explore-selection")
        page = open_page(browser, address)
        page.select_option("#second", "1")
        page.wait_for_function("document.querySelectorAll('.map').length === 2")
        page.wait_for_timeout(500)
        show_node(page, "json")
        page.click("#whole")
        keep(page, "explore-two")
        page = open_page(browser, address, width=390, height=844, scheme="dark")
        keep(page, "explore-phone")
        browser.close()


if __name__ == "__main__":
    main()
