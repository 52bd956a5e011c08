"""Serve the page on this machine alone, to whoever has its address; or write it as one file."""

from __future__ import annotations

import base64
import json
import re
import secrets
import traceback
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import numpy as np

from neural_brane.errors import BraneError, ParameterError
from neural_brane.explore.view import LISTS, NEAREST, View
from neural_brane.files.storage import atomic

# An answer as bytes: the length of a description (four bytes), the description as JSON (padded with spaces to a
# multiple of four), and then the arrays (four bytes a number); all numbers are little-endian. The description holds the
# plain values of the answer, and the name, kind ("u4" or "f4") and length of each array.


def pack(answer: dict[str, Any]) -> bytes:
    """An answer of the view as bytes, as the page reads it from the server or from its own file.

    >>> pack({"n": 1, "rows": np.array([258], np.uint32)})[-17:]
    b' "u4", 1]]}  \\x02\\x01\\x00\\x00'
    """
    arrays = {name: value for name, value in answer.items() if isinstance(value, np.ndarray)}
    plain = {name: value for name, value in answer.items() if name not in arrays}
    listed = [[name, f"{array.dtype.kind}{array.dtype.itemsize}", array.size] for name, array in arrays.items()]
    text = json.dumps({"plain": plain, "arrays": listed}).encode()
    text += b" " * (-len(text) % 4)
    numbers = [array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes() for array in arrays.values()]
    return b"".join([len(text).to_bytes(4, "little"), text, *numbers])


# It listens on 127.0.0.1. Every path begins with a token that cannot be guessed, so another user of the machine, or a
# page of another site in the same browser, cannot ask for anything. The Host header must be our own, so that no other
# name can be made to lead here. Files of the page are known by name: no path of the disk is ever made from a request.

TYPES = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
# The renderer puts shaders' inputs together by functions that it makes from text, which is what 'unsafe-eval' allows.
# It makes them from its own text alone; everything else is forbidden, other hosts above all.
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self'; img-src data: blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
MOST_BYTES = 16_000_000  # of a request: the rows of four million nodes


def page_files() -> dict[str, bytes]:
    """The files of the page by the name that it asks for them by."""
    page = resources.files("neural_brane.explore") / "page"
    found = {file.name: file.read_bytes() for file in page.iterdir() if file.name.endswith((".html", ".css", ".js"))}
    vendored = (file for file in (page / "vendor").iterdir() if file.name.endswith(".js"))
    return found | {f"vendor/{file.name}": file.read_bytes() for file in vendored}


class Server(ThreadingHTTPServer):
    """Serves one view; `address` is what to open in a browser.

    Parameters
    ----------
    view
        What the page can ask.
    port
        Where to listen; 0 takes a free one.
    making
        A function that tells which map is in the making and how far it is, or None when none is.
    """

    daemon_threads = True

    def __init__(self, view: View, *, port: int = 0, making: Callable[[], dict[str, Any] | None] = lambda: None):
        super().__init__(("127.0.0.1", port), Handler)
        self.view, self.making = view, making
        self.token = secrets.token_urlsafe(24)
        self.files = page_files()

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def find(self, name: str, query: dict[str, str], rows: np.ndarray | None = None) -> tuple[bytes, str] | None:
        """A file of the page, or the answer to a question, with its type; None where there is neither.

        rows: the nodes that were sent along, which some questions take and the others do not.
        """
        if name in self.files and rows is None:
            return self.files[name], TYPES[name.rpartition(".")[2]]
        folder, _, question = name.partition("/")
        if folder != "api" or (question in LISTS) != (rows is not None):
            return None
        # Progress is asked for before the view, so that a map which is said to be ready is also listed.
        more = {"making": self.making()} if question == "about" else {}
        answer = self.view.answer(question, query, rows)
        return None if answer is None else (pack(answer | more), "application/octet-stream")


class Handler(BaseHTTPRequestHandler):
    """Checks a request and hands it to the server."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "brane", ""
    server: Server

    def do_GET(self) -> None:
        """Answer a question, or give a file of the page."""
        name, query = self._asked()
        if name is not None:
            self._answer(lambda: self.server.find(name or "index.html", query))

    def do_POST(self) -> None:
        """Answer a question about the rows that are sent along, as numbers of four bytes."""
        name, query = self._asked()
        length = self.headers.get("Content-Length", "")
        if name is None:
            self.close_connection = True  # what was sent along is left unread
            return
        if not length.isdecimal() or int(length) > MOST_BYTES or int(length) % 4:
            self.close_connection = True
            self._send(400, b"send the numbers of rows, of four bytes each", "text/plain")
            return
        rows = np.frombuffer(self.rfile.read(int(length)), "<u4").astype(np.int64)
        self._answer(lambda: self.server.find(name, query, rows))

    def _asked(self) -> tuple[str | None, dict[str, str]]:
        """The name that is asked for, after the token; None where the request was refused."""
        port = self.server.server_port
        if self.headers.get("Host") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            self._send(403, b"this server answers to 127.0.0.1 alone", "text/plain")
            return None, {}
        address = urlsplit(self.path)
        _, token, *rest = address.path.split("/", 2)
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._send(403, b"open the address that 'brane explore' printed: it holds a token", "text/plain")
            return None, {}
        if not rest:
            self._send(404, b"the address ends in a slash", "text/plain")
            return None, {}
        return rest[0], {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}

    def _answer(self, find: Callable[[], tuple[bytes, str] | None]) -> None:
        try:
            found = find()
        except BraneError as error:
            self._send(400, str(error).encode(), "text/plain; charset=utf-8")
            return
        except (KeyError, ValueError):
            self._send(400, b"a part of the question is missing, or is not a number", "text/plain")
            return
        except Exception as mistake:  # one of ours: the page says so, and the terminal shows where
            traceback.print_exc()
            self._send(500, f"this is a mistake of ours: {mistake!r}".encode(), "text/plain; charset=utf-8")
            return
        if found is None:
            self._send(404, b"there is no such thing here", "text/plain")
        else:
            self._send(200, *found)

    def _send(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        for header, value in HEADERS.items():
            self.send_header(header, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of requests: they hold the token."""

    def handle(self) -> None:
        """Serve a connection; a browser that goes away ends it."""
        try:
            super().handle()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


MOST_NODES = 50_000  # each takes some 200 bytes of the file, with its links and attributes
MOST_ENTRIES = 4_000_000  # links and attributes together
# As the server's policy, but that scripts stand in the file itself: they are ours, the data is none of them.
FILE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' data:; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
LEFT_OUT = (
    f"the vectors themselves; a node's nearest nodes beyond the first {NEAREST}; "
    "how alike two nodes are that are not among each other's nearest; what a model says of a node"
)


def check_size(view: View) -> None:
    """Refuse a view that would make a file too large for a browser to open with ease."""
    entries = view.nodes.adjacency.nnz + view.nodes.attributes.nnz
    if len(view.nodes) > MOST_NODES or entries > MOST_ENTRIES:
        raise ParameterError(
            f"{len(view.nodes):,} nodes with {entries:,} links and attributes are too many for one file, which takes "
            f"{MOST_NODES:,} nodes and {MOST_ENTRIES:,} links and attributes: look at them without --html, or give "
            "vectors of fewer nodes"
        )


def write_static(view: View, path: Path) -> str:
    """Write the page with all its data to one file; returns what had to be left out of it.

    Modules are data addresses, which an import map finds by name; the data is JSON.
    """
    files = {name: content.decode() for name, content in page_files().items()}
    page = files["index.html"]
    addresses = {name: _module(name, content) for name, content in files.items() if name.endswith(".js")}
    main = addresses.pop("main.js")
    imports = json.dumps({"imports": addresses})
    data = json.dumps(collect(view)).replace("<", "\\u003c")  # no text can end the element that holds it
    page = page.replace('<link rel="stylesheet" href="app.css">', f"<style>\n{files['app.css']}</style>")
    page = page.replace("<head>\n", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{FILE_POLICY}">\n')
    scripts = (
        f'<script type="application/json" id="data">{data}</script>\n'
        f'<script type="importmap">{imports}</script>\n'
        f'<script type="module">import "{main}";</script>'
    )
    with atomic(path) as draft:
        draft.write_text(page.replace('<script type="module" src="main.js"></script>', scripts), encoding="utf-8")
    return LEFT_OUT


def _module(name: str, code: str) -> str:
    """A module as a data address; what it imports is named without a folder, for the import map."""
    named = re.sub(r'(from|import)\s*"\./([\w./-]+\.js)"', r'\1 "\2"', code) if "/" not in name else code
    return f"data:text/javascript;base64,{base64.b64encode(named.encode()).decode()}"


def collect(view: View) -> dict[str, str]:
    """The server's answers, about all nodes where it is asked about some: by the question, compressed, in base64."""
    asked: list[tuple[str, dict[str, Any]]] = [("names", {}), ("links", {}), ("attributes", {})]
    asked += [("column", {"name": column["name"]}) for column in view.about()["columns"]]
    for number, run in enumerate(view.runs):
        asked.append(("nearest", {"run": number}))
        asked += [(name, {"run": number, "layout": layout}) for name in ("points", "regions") for layout in run.points]
    answers = {f"{name}?{urlencode(query)}": view.answer(name, query) or {} for name, query in asked}
    answers["about?"] = view.about() | {"making": None, "left_out": LEFT_OUT}
    return {address: base64.b64encode(zlib.compress(pack(answer))).decode() for address, answer in answers.items()}
