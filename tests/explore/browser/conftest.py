"""Pages of the explorer in a browser, with what they complain of and which addresses they ask for."""

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
    """A page, and what it complained of and asked for while it was open."""

    page: Any
    address: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def wait(self) -> None:
        """Wait until the map is drawn."""
        self.page.wait_for_selector("body[data-state=ready]", timeout=60_000)

    def check(self) -> None:
        """Nothing was complained of, and nothing was asked of anybody else."""
        assert self.complaints == []
        assert [url for url in self.requests if not url.startswith((self.address, "data:", "blob:"))] == []

    def places(self, view: View) -> np.ndarray:
        """Where every node stands on the screen, (nodes, 2), while the whole map of the first run is shown."""
        box = self.page.locator(".map").first.bounding_box()
        points = view.runs[0].points_of(list(view.runs[0].points)[-1])
        half = min(box["height"], box["width"]) / 2
        return np.array([box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]) + points * (half, -half)

    def place(self, view: View, row: int) -> tuple[float, float]:
        """Where a node stands on the screen."""
        x, y = self.places(view)[row].tolist()
        return x, y

    def lasso(self, corners: tuple[float, float, float, float], key: str | None = None) -> None:
        """Draw around a rectangle (left, top, right, bottom), perhaps with a key held."""
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
        """The row of the node on the map that is farthest from any other, so that a click cannot miss it."""
        points = view.runs[0].points_of(list(view.runs[0].points)[-1])
        inside = np.flatnonzero(np.abs(points).max(axis=1) < 0.85)
        distances = cKDTree(points).query(points[inside], k=2)[0][:, 1]
        return int(inside[np.argsort(-distances)[beyond]])

    def clear_box(self, view: View, middle: int, half: float) -> tuple[tuple[float, ...], set[int]]:
        """A rectangle about a node whose border is away from every node, and the rows of the nodes within."""
        spots = self.places(view)
        x, y = spots[middle]

        def gap(values: np.ndarray, near: float) -> float:
            """A number near a wanted one that lies far from all values."""
            tried = near + np.arange(-40, 41) * 0.5
            return float(tried[np.argmax(np.abs(values[None] - tried[:, None]).min(axis=1))])

        left, right = gap(spots[:, 0], x - half), gap(spots[:, 0], x + half)
        tall = spots[(spots[:, 0] > left - 5) & (spots[:, 0] < right + 5)]
        top, bottom = gap(tall[:, 1], y - half), gap(tall[:, 1], y + half)
        inside = (spots > (left, top)).all(axis=1) & (spots < (right, bottom)).all(axis=1)
        return (left, top, right, bottom), set(np.flatnonzero(inside).tolist())

    @staticmethod
    def typical(view: View, rows: list[int]) -> list[str]:
        """The attributes that the page lists as typical of some nodes, by the library's rule."""
        nodes = view.nodes
        found = np.bincount(nodes.attributes[np.array(rows)].indices, minlength=len(nodes.attribute_names))
        best = rank_typical(found, len(rows), nodes.holders, len(nodes))[:15]
        return [nodes.attribute_names[column] for column in best.tolist()]

    def exported(self, kind: str) -> str:
        """What the page gives to download as the selection."""
        with self.page.expect_download() as download:
            self.page.click(f"#export-{kind}")
        return Path(download.value.path()).read_bytes().decode()

    def exported_ids(self) -> list[str]:
        """The ids of the selection, from the CSV file."""
        return [row["id"] for row in csv.DictReader(io.StringIO(self.exported("csv"), newline=""))]


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Opened]]:
    """A function that opens an address and waits until its map is drawn; pages are closed after the test."""
    pages = []

    def start(address: str, width: int = 1280, height: int = 800, **options: Any) -> Opened:
        page = browser.new_page(viewport={"width": width, "height": height}, **options)
        pages.append(page)
        opened = Opened(page, address.partition("#")[0])

        def heard(message: Any) -> None:
            if "GPU stall due to ReadPixels" not in message.text:  # of drawing without a graphics card
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
    """Two files of vectors of the standard library's modules, with a map by t-SNE where it can be had."""
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
    """Vectors of Debian's packages, read from tables; skips the test where they are not here."""
    folder = Path(os.environ.get("NEURAL_BRANE_DATA", ""), "debian-tables")
    if not (folder / "packages.csv").is_file():
        pytest.skip("put debian-tables into the folder NEURAL_BRANE_DATA to run this test")
    graph = datasets.read(folder / "dependencies.csv", nodes=folder / "packages.csv", label="section")
    path = tmp_path_factory.mktemp("debian") / "debian.npz"
    METHODS["attributes"](dim=32, seed=0).fit_transform(graph).save(path)
    view = open_view([path], graph)
    lay_out(view, "pca")
    return view
