"""Views of the small graph and of the standard library, and a server that stops after the test."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from neural_brane.embedding import Embedding
from neural_brane.explore.opening import lay_out, open_view
from neural_brane.explore.server import Server
from neural_brane.explore.view import View
from neural_brane.graph import AttributedGraph


@pytest.fixture
def small_file(small_graph: AttributedGraph, tmp_path: Path) -> Path:
    """Return vectors of the small graph in another order than the graph's nodes."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(len(small_graph), 6)).astype(np.float32)
    path = tmp_path / "small.npz"
    Embedding(vectors, small_graph.ids[::-1].copy()).save(path)
    return path


@pytest.fixture
def small_view(small_file: Path, small_graph: AttributedGraph) -> View:
    """Return a view of the small graph with a map by PCA."""
    view = open_view([small_file], small_graph)
    lay_out(view, "pca")
    return view


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """Return a function that starts a server of a view; the server stops after the test."""
    started = []

    def start(view: View, **options: Any) -> Server:
        server = Server(view, **options)
        thread = threading.Thread(target=server.serve)
        thread.start()
        started.append((server, thread))
        return server

    yield start
    for server, thread in started:
        server.stop()
        thread.join()
        server.close()


@pytest.fixture
def unpack() -> Callable[[bytes], dict[str, Any]]:
    """Return a function that unpacks an answer as the page does."""

    def read(content: bytes) -> dict[str, Any]:
        length = int.from_bytes(content[:4], "little")
        assert length % 4 == 0
        described = json.loads(content[4 : 4 + length])
        answer, at = described["plain"], 4 + length
        for name, kind, size in described["arrays"]:
            answer[name] = np.frombuffer(content[at : at + 4 * size], f"<{kind}")
            at += 4 * size
        assert at == len(content)
        return answer

    return read
