"""Serve the page to this machine, or write it to one file."""

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

# An answer as bytes: the length of a header (four bytes), the header as JSON (padded with spaces to a multiple of four)
# and the arrays (four bytes per number); all numbers are little-endian. The header has the plain values of the answer,
# and the name, type ("u4" or "f4") and length of each array.


def pack(answer: dict[str, Any]) -> bytes:
    r"""Return an answer of the view as bytes, in the form that the page reads.

    >>> pack({"n": 1, "rows": np.array([258], np.uint32)})[-17:]
    b' "u4", 1]]}  \x02\x01\x00\x00'
    """
    arrays = {name: value for name, value in answer.items() if isinstance(value, np.ndarray)}
    plain = {name: value for name, value in answer.items() if name not in arrays}
    listed = [[name, f"{array.dtype.kind}{array.dtype.itemsize}", array.size] for name, array in arrays.items()]
    text = json.dumps({"plain": plain, "arrays": listed}).encode()
    text += b" " * (-len(text) % 4)
    numbers = [array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes() for array in arrays.values()]
    return b"".join([len(text).to_bytes(4, "little"), text, *numbers])


# Security: the server listens on 127.0.0.1 only. Every path begins with a secret token, so that other users of the
# machine and other sites in the browser get no answer. The Host header must be our own, which prevents DNS rebinding.
# A request can only name a file of the page; it never becomes a path on the disk.

TYPES = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}
# The renderer needs 'unsafe-eval', because it builds functions from its own text. Other hosts are forbidden.
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
MOST_BYTES = 16_000_000  # longest request: four million row numbers


def page_files() -> dict[str, bytes]:
    """Return the contents of the page's files by name."""
    page = resources.files("neural_brane.explore") / "page"
    found = {file.name: file.read_bytes() for file in page.iterdir() if file.name.endswith((".html", ".css", ".js"))}
    vendored = (file for file in (page / "vendor").iterdir() if file.name.endswith(".js"))
    return found | {f"vendor/{file.name}": file.read_bytes() for file in vendored}


class Server(ThreadingHTTPServer):
    """A server of one view; open its `address` in a browser.

    Parameters
    ----------
    view : View
        The data of the page.
    port : int
        The port to listen on; 0 takes a free one.
    making : function
        Returns the progress of the map that is being computed, or None.
    """

    daemon_threads = True

    def __init__(self, view: View, *, port: int = 0, making: Callable[[], dict[str, Any] | None] = lambda: None):
        super().__init__(("127.0.0.1", port), Handler)
        self.view, self.making = view, making
        self.token = secrets.token_urlsafe(24)
        self.files = page_files()

    @property
    def address(self) -> str:
        """The address of the page, with the token."""
        return f"http://127.0.0.1:{self.server_port}/{self.token}/"

    def find(self, name: str, query: dict[str, str], rows: np.ndarray | None = None) -> tuple[bytes, str] | None:
        """Return a file of the page or the answer to a question, with its content type; None if there is neither.

        rows: the nodes in the body of the request; only the questions in `LISTS` have some.
        """
        if name in self.files and rows is None:
            return self.files[name], TYPES[name.rpartition(".")[2]]
        folder, _, question = name.partition("/")
        if folder != "api" or (question in LISTS) != (rows is not None):
            return None
        # Read the progress before the view, so that a map that is reported as finished is also listed.
        progress = {"making": self.making()} if question == "about" else {}
        answer = self.view.answer(question, query, rows)
        return None if answer is None else (pack(answer | progress), "application/octet-stream")


class Handler(BaseHTTPRequestHandler):
    """A request: its address is checked, then the server answers it."""

    protocol_version = "HTTP/1.1"
    server_version, sys_version = "brane", ""
    server: Server

    def do_GET(self) -> None:
        """Answer a question or send a file of the page."""
        name, query = self._checked_address()
        if name is not None:
            self._answer(lambda: self.server.find(name or "index.html", query))

    def do_POST(self) -> None:
        """Answer a question about the rows in the body of the request, as numbers of four bytes."""
        name, query = self._checked_address()
        length = self.headers.get("Content-Length", "")
        if name is None:
            self.close_connection = True  # the body is left unread
            return
        if not length.isdecimal() or int(length) > MOST_BYTES or int(length) % 4:
            self.close_connection = True
            self._send(400, b"the body is not a list of row numbers of four bytes each", "text/plain")
            return
        rows = np.frombuffer(self.rfile.read(int(length)), "<u4").astype(np.int64)
        self._answer(lambda: self.server.find(name, query, rows))

    def _checked_address(self) -> tuple[str | None, dict[str, str]]:
        """Return the path after the token and the query; refuse a wrong host or token and return None."""
        port = self.server.server_port
        if self.headers.get("Host") not in (f"127.0.0.1:{port}", f"localhost:{port}"):
            self._send(403, b"this server answers only at 127.0.0.1", "text/plain")
            return None, {}
        address = urlsplit(self.path)
        _, token, *rest = address.path.split("/", 2)
        if not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self._send(403, b"open the whole address that 'brane explore' printed; it contains a token", "text/plain")
            return None, {}
        if not rest:
            self._send(404, b"add a slash to the end of the address", "text/plain")
            return None, {}
        return rest[0], {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}

    def _answer(self, find: Callable[[], tuple[bytes, str] | None]) -> None:
        try:
            found = find()
        except BraneError as error:
            self._send(400, str(error).encode(), "text/plain; charset=utf-8")
            return
        except (KeyError, ValueError):
            self._send(400, b"a value in the address is missing or is not a number", "text/plain")
            return
        except Exception as bug:  # the page shows the error, the terminal the traceback
            traceback.print_exc()
            self._send(500, f"this is a bug in brane explore: {bug!r}".encode(), "text/plain; charset=utf-8")
            return
        if found is None:
            self._send(404, b"this server has no such file or question", "text/plain")
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
        """Print nothing about requests, because they contain the token."""

    def handle(self) -> None:
        """Serve a connection until the browser closes it."""
        try:
            super().handle()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True


# Limits of the page in one file. A node takes some 200 bytes with its links and attributes.
MOST_NODES = 50_000
MOST_ENTRIES = 4_000_000  # links and attributes together
# The server's policy, with scripts inside the file allowed. The data cannot become a script.
FILE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' data:; style-src 'unsafe-inline'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)
LEFT_OUT = (
    f"the vectors themselves; a node's nearest nodes beyond the first {NEAREST}; "
    "the similarity of two nodes that are not among each other's nearest; explanations by a model"
)


def check_size(view: View) -> None:
    """Raise an error if the file of a view would be too large for a browser."""
    entries = view.nodes.adjacency.nnz + view.nodes.attributes.nnz
    if len(view.nodes) > MOST_NODES or entries > MOST_ENTRIES:
        raise ParameterError(
            f"{len(view.nodes):,} nodes with {entries:,} links and attributes are too many for one file (at most "
            f"{MOST_NODES:,} nodes and {MOST_ENTRIES:,} links and attributes); leave --html out, or give vectors of "
            "fewer nodes"
        )


def write_static(view: View, path: Path) -> str:
    """Write the page with all its data to one file; return a sentence about the data that is left out.

    The modules are data URLs in an import map; the data is JSON.
    """
    files = {name: content.decode() for name, content in page_files().items()}
    page = files["index.html"]
    addresses = {name: _module(name, content) for name, content in files.items() if name.endswith(".js")}
    main = addresses.pop("main.js")
    imports = json.dumps({"imports": addresses})
    data = json.dumps(collect(view)).replace("<", "\\u003c")  # so that no text can close the script element
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
    """Return a module as a data URL; its imports become bare names for the import map."""
    named = re.sub(r'(from|import)\s*"\./([\w./-]+\.js)"', r'\1 "\2"', code) if "/" not in name else code
    return f"data:text/javascript;base64,{base64.b64encode(named.encode()).decode()}"


def collect(view: View) -> dict[str, str]:
    """Return the answers to all questions, about all nodes: by question, compressed, in base64."""
    questions: list[tuple[str, dict[str, Any]]] = [("names", {}), ("links", {}), ("attributes", {})]
    questions += [("column", {"name": column["name"]}) for column in view.about()["columns"]]
    for number, run in enumerate(view.runs):
        questions.append(("nearest", {"run": number}))
        for name in ("points", "regions"):
            questions += [(name, {"run": number, "layout": layout}) for layout in run.points]
    answers = {f"{name}?{urlencode(query)}": view.answer(name, query) or {} for name, query in questions}
    answers["about?"] = view.about() | {"making": None, "left_out": LEFT_OUT}
    return {address: base64.b64encode(zlib.compress(pack(answer))).decode() for address, answer in answers.items()}
