"""Open pages of the explorer in a browser, and record their complaints and requests."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial import cKDTree

from neural_brane import METHODS
from neural_brane.explore.opening import lay_out, open_view
from neural_brane.explore.view import View
from neural_brane.files import datasets
from neural_brane.insight.groups import rank_typical


@dataclass
class Opened:
    """A page with its complaints and requests."""

    page: Any
    address: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def wait(self) -> None:
        """Wait until the map is drawn."""
        self.page.wait_for_selector("body[data-state=ready]", timeout=60_000)

    def check(self) -> None:
        """Check that the page made no complaint and no request to another server."""
        assert self.complaints == []
        assert [url for url in self.requests if not url.startswith((self.address, "data:", "blob:"))] == []

    def places(self, view: View) -> np.ndarray:
        """Return the position of every node on the screen (nodes, 2), while the first run's whole map is shown."""
        box = self.page.locator(".map").first.bounding_box()
        points = view.runs[0].points_of(list(view.runs[0].points)[-1])
        half = min(box["height"], box["width"]) / 2
        return np.array([box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]) + points * (half, -half)

    def place(self, view: View, row: int) -> tuple[float, float]:
        """Return the position of a node on the screen."""
        x, y = self.places(view)[row].tolist()
        return x, y

    def lasso(self, corners: tuple[float, float, float, float], key: str | None = None) -> None:
        """Draw a lasso around a rectangle (left, top, right, bottom), with a key held if one is given."""
        left, top, right, bottom = corners
        mouse, keyboard = self.page.mouse, self.page.keyboard
        if key:
            keyboard.down(key)
        mouse.move(left, top)
        mouse.down()
        for x, y in ((right, top), (right, bottom), (left, bottom), (left, top + 2)):
            mouse.move(x, y, steps=4)
            self.page.wait_for_timeout(20)
        mouse.up()
        if key:
            keyboard.up(key)

    @staticmethod
    def lonely(view: View, beyond: int = 0) -> int:
        """Return the row of the node that is farthest from any other, so that a click cannot miss it."""
        points = view.runs[0].points_of(list(view.runs[0].points)[-1])
        inside = np.flatnonzero(np.abs(points).max(axis=1) < 0.85)
        distances = cKDTree(points).query(points[inside], k=2)[0][:, 1]
        return int(inside[np.argsort(-distances)[beyond]])

    def clear_box(self, view: View, middle: int, half: float) -> tuple[tuple[float, ...], set[int]]:
        """Return a rectangle around a node, with no node near its border, and the rows of the nodes inside."""
        spots = self.places(view)
        x, y = spots[middle]

        def gap(values: np.ndarray, near: float) -> float:
            """Return a number near a given one that is far from all values."""
            tried = near + np.arange(-40, 41) * 0.5
            return float(tried[np.argmax(np.abs(values[None] - tried[:, None]).min(axis=1))])

        left, right = gap(spots[:, 0], x - half), gap(spots[:, 0], x + half)
        tall = spots[(spots[:, 0] > left - 5) & (spots[:, 0] < right + 5)]
        top, bottom = gap(tall[:, 1], y - half), gap(tall[:, 1], y + half)
        inside = (spots > (left, top)).all(axis=1) & (spots < (right, bottom)).all(axis=1)
        return (left, top, right, bottom), set(np.flatnonzero(inside).tolist())

    @staticmethod
    def typical(view: View, rows: list[int]) -> list[str]:
        """Return the typical attributes of nodes by the library's rule."""
        nodes = view.nodes
        found = np.bincount(nodes.attributes[np.array(rows)].indices, minlength=len(nodes.attribute_names))
        best = rank_typical(found, len(rows), nodes.holders, len(nodes))[:15]
        return [nodes.attribute_names[column] for column in best.tolist()]

    def exported(self, kind: str) -> str:
        """Return the downloaded file of the selection."""
        with self.page.expect_download() as download:
            self.page.click(f"#export-{kind}")
        return Path(download.value.path()).read_bytes().decode()

    def exported_ids(self) -> list[str]:
        """Return the ids of the selection from the CSV file."""
        return [row["id"] for row in csv.DictReader(io.StringIO(self.exported("csv"), newline=""))]


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Opened]]:
    """Return a function that opens an address and waits for its map; pages are closed after the test."""
    pages = []

    def start(address: str, width: int = 1280, height: int = 800, **options: Any) -> Opened:
        page = browser.new_page(viewport={"width": width, "height": height}, **options)
        pages.append(page)
        opened = Opened(page, address.partition("#")[0])

        def heard(message: Any) -> None:
            if "GPU stall due to ReadPixels" not in message.text:  # comes with drawing without a graphics card
                opened.complaints.append(message.text)

        opened.page.on("console", heard)
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.goto(address)
        opened.wait()
        return opened

    yield start
    for page in pages:
        page.close()


@pytest.fixture(scope="session")
def stdlib_view(tmp_path_factory: pytest.TempPathFactory) -> View:
    """Return a view of two files of vectors of the standard library, with t-SNE if it is installed."""
    folder = tmp_path_factory.mktemp("stdlib")
    graph = datasets.load("stdlib")
    paths = []
    for name in ("propagated-attributes", "attributes"):
        paths.append(folder / f"{name}.npz")
        METHODS[name](dim=16, seed=0).fit_transform(graph).save(paths[-1])
    view = open_view(paths, graph)
    lay_out(view, "pca")
    return view


@pytest.fixture(scope="session")
def debian_view(tmp_path_factory: pytest.TempPathFactory) -> View:
    """Return vectors of Debian's packages, read from tables; skip the test if the tables are missing."""
    folder = Path(os.environ.get("NEURAL_BRANE_DATA", ""), "debian-tables")
    if not (folder / "packages.csv").is_file():
        pytest.skip("put debian-tables into the folder NEURAL_BRANE_DATA to run this test")
    graph = datasets.read(folder / "dependencies.csv", nodes=folder / "packages.csv", label="section")
    path = tmp_path_factory.mktemp("debian") / "debian.npz"
    METHODS["attributes"](dim=32, seed=0).fit_transform(graph).save(path)
    view = open_view([path], graph)
    lay_out(view, "pca")
    return view
