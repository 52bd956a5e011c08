"""Serve the page to this machine, or write it to one file."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
import secrets
import socket
import sys
import threading
import traceback
import zlib
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from http import HTTPStatus
from http.client import HTTPException, parse_headers
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode

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
MOST_BYTES = 16_000_000  # longest body of a request: four million row numbers
MOST_HEAD = 65_536  # bytes of the longest request without its body
MOST_WAITING = 512  # connections that may wait until the server accepts them
WORKERS = 8  # questions that are answered at once; more wait for their turn


def page_files() -> dict[str, bytes]:
    """Return the contents of the page's files by name."""
    page = resources.files("neural_brane.explore") / "page"
    found = {file.name: file.read_bytes() for file in page.iterdir() if file.name.endswith((".html", ".css", ".js"))}
    vendored = (file for file in (page / "vendor").iterdir() if file.name.endswith(".js"))
    return found | {f"vendor/{file.name}": file.read_bytes() for file in vendored}


class RefusedError(Exception):
    """A request that is answered with an error: its status, and a sentence."""

    def __init__(self, status: HTTPStatus, words: str):
        super().__init__(words)
        self.status = status


class Server:
    """A server of one view; open its `address` in a browser.

    One thread reads requests and sends answers. At most `WORKERS` others find the answers, so slow browsers and open
    connections take no thread.

    Parameters
    ----------
    view : View
        The data of the page.
    port : int
        The port to listen on; 0 takes a free one.
    making : function
        Returns the progress of the map that is being computed, or None.
    timeout : float
        Seconds that a browser may take to send a request or to receive its answer.
    """

    def __init__(
        self,
        view: View,
        *,
        port: int = 0,
        making: Callable[[], dict[str, Any] | None] = lambda: None,
        timeout: float = 30.0,
    ):
        self.socket = socket.create_server(("127.0.0.1", port), backlog=MOST_WAITING)
        self.host, self.port = self.socket.getsockname()
        self.view, self.making, self.timeout = view, making, timeout
        self.token = secrets.token_urlsafe(24)
        self.files = page_files()
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._loop = self._runner.get_loop()
        self._stopping, self._workers = asyncio.Event(), asyncio.Semaphore(WORKERS)

    @property
    def address(self) -> str:
        """The address of the page, with the token."""
        return f"http://127.0.0.1:{self.port}/{self.token}/"

    def serve(self) -> None:
        """Answer requests until Ctrl-C, or until another thread calls `stop`."""
        try:
            self._runner.run(self._listen())
        finally:
            self._runner.close()  # here, because another thread may have a loop of its own

    def stop(self) -> None:
        """End `serve`."""
        self._loop.call_soon_threadsafe(self._stopping.set)

    def close(self) -> None:
        """Close the port and what `serve` has left open."""
        self._runner.close()
        self.socket.close()

    def find(self, name: str, query: dict[str, str], rows: np.ndarray | None = None) -> tuple[bytes, str]:
        """Return a file of the page or the answer to a question, with its content type.

        rows: the nodes in the body of the request; only the questions in `LISTS` have some.
        """
        if name in self.files and rows is None:
            return self.files[name], TYPES[name.rpartition(".")[2]]
        folder, _, question = name.partition("/")
        answer = None
        if folder == "api" and (question in LISTS) == (rows is not None):
            # Read the progress before the view, so that a map that is reported as finished is also listed.
            progress = {"making": self.making()} if question == "about" else {}
            answer = self.view.answer(question, query, rows)
        if answer is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, "this server has no such file or question")
        return pack(answer | progress), "application/octet-stream"

    async def _listen(self) -> None:
        self._loop.set_exception_handler(print_bug)
        await asyncio.start_server(self._serve, sock=self.socket, limit=MOST_HEAD, backlog=MOST_WAITING)
        await self._stopping.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of a connection until the browser closes it or is silent for too long."""
        writer.transport.set_write_buffer_limits(0)  # so that drain() waits until all is sent
        stays = True
        try:
            while stays:
                async with asyncio.timeout(self.timeout):
                    first = await reader.read(1)
                if not first:
                    break
                answer, stays = await self._answer(first, reader)
                async with asyncio.timeout(self.timeout):
                    writer.write(answer)
                    await writer.drain()
        except OSError:  # a lost connection, or a timeout
            pass
        finally:  # the server may also end
            writer.transport.abort()

    async def _answer(self, first: bytes, reader: asyncio.StreamReader) -> tuple[bytes, bool]:
        """Return the answer to a request with this first byte, and whether the connection stays open."""
        status, stays = HTTPStatus.OK, False
        try:
            async with asyncio.timeout(self.timeout):
                find, stays = await self._read(first, reader)
            async with self._workers:
                content, kind = await call_in_thread(find)
        except ConnectionError:
            raise
        except Exception as error:
            status, words = describe(error)
            content, kind = words.encode(), "text/plain; charset=utf-8"
        headers = HEADERS | {"Content-Type": kind, "Content-Length": str(len(content))}
        headers["Connection"] = "keep-alive" if stays else "close"
        lines = [f"HTTP/1.1 {status} {status.phrase}", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join([*lines, "", ""]).encode() + content, stays

    async def _read(self, first: bytes, reader: asyncio.StreamReader) -> tuple[Callable[[], tuple[bytes, str]], bool]:
        """Read and check a request; return a function that finds its answer, and whether the connection stays open."""
        line, _, rest = (first + await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")
        headers = parse_headers(io.BytesIO(rest))
        words = line.decode("latin-1").split(" ")
        if len(words) != 3 or words[2] not in ("HTTP/1.0", "HTTP/1.1"):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "the first line is not METHOD /PATH HTTP/1.1")
        method, target, version = words
        name, query = self._check_address(target, headers["Host"])
        if method not in ("GET", "POST"):
            raise RefusedError(HTTPStatus.NOT_IMPLEMENTED, "this server answers GET and POST only")
        rows = None
        if method == "POST":  # the body lists rows as numbers of four bytes
            length = headers.get("Content-Length", "")
            if not re.fullmatch("[0-9]{1,9}", length) or int(length) > MOST_BYTES or int(length) % 4:
                raise RefusedError(HTTPStatus.BAD_REQUEST, "the body is not a list of row numbers of four bytes each")
            rows = np.frombuffer(await reader.readexactly(int(length)), "<u4").astype(np.int64)
        stays = version == "HTTP/1.1" and headers.get("Connection", "").lower() != "close"
        return partial(self.find, name, query, rows), stays

    def _check_address(self, target: str, host: str | None) -> tuple[str, dict[str, str]]:
        """Return the path after the token and the query; refuse a wrong host or token."""
        if host not in (f"127.0.0.1:{self.port}", f"localhost:{self.port}"):
            raise RefusedError(HTTPStatus.FORBIDDEN, "this server answers only at 127.0.0.1")
        path, _, query = target.partition("?")
        token, slash, name = path.removeprefix("/").partition("/")
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            words = "open the whole address that 'brane explore' printed; it contains a token"
            raise RefusedError(HTTPStatus.FORBIDDEN, words)
        if not slash:
            raise RefusedError(HTTPStatus.NOT_FOUND, "add a slash to the end of the address")
        values = parse_qs(query, keep_blank_values=True)
        return name or "index.html", {key: value[0] for key, value in values.items()}


def call_in_thread(function: Callable[[], Any]) -> asyncio.Future[Any]:
    """Call a function in a new thread. Unlike a thread of asyncio's pool, it does not delay the end of the program."""
    called: Future[Any] = Future()
    called.set_running_or_notify_cancel()

    def call() -> None:
        try:
            called.set_result(function())
        except BaseException as error:
            called.set_exception(error)

    threading.Thread(target=call, daemon=True).start()
    return asyncio.wrap_future(called)


def describe(error: Exception) -> tuple[HTTPStatus, str]:
    """Return the status and the sentence that answer a request; a bug of ours is also printed."""
    match error:
        case RefusedError():
            return error.status, str(error)
        case BraneError():
            return HTTPStatus.BAD_REQUEST, str(error)
        case KeyError() | ValueError():
            return HTTPStatus.BAD_REQUEST, "a value in the address is missing or is not a number"
        case TimeoutError():
            return HTTPStatus.REQUEST_TIMEOUT, "the request did not arrive in time"
        case asyncio.IncompleteReadError():
            return HTTPStatus.BAD_REQUEST, "the request ends too early"
        case asyncio.LimitOverrunError() | HTTPException():
            return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the header of the request is too long"
    place = traceback.extract_tb(error.__traceback__)[-1]
    words = f"this is a bug in brane explore: {error!r} in {place.name}, line {place.lineno} of {place.filename}"
    print(words, file=sys.stderr)
    return HTTPStatus.INTERNAL_SERVER_ERROR, words


def print_bug(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Print a bug of ours in one line; say nothing of lost connections, nor of too many that are open."""
    error = context.get("exception")
    if isinstance(error, Exception) and not isinstance(error, OSError):
        describe(error)


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
