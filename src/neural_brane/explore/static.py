"""The page as one file, which opens from the disk without a server."""

from __future__ import annotations

import base64
import json
import re
import zlib
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from neural_brane.errors import ParameterError
from neural_brane.explore.server import pack, page_files
from neural_brane.explore.view import NEAREST, View
from neural_brane.files.storage import atomic

MOST_NODES = 50_000  # each takes some 200 bytes of the file, with its links and attributes
MOST_ENTRIES = 4_000_000  # links and attributes together
# As the server's policy, but that scripts stand in the file itself: they are ours, the data is none of them.
POLICY = (
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
    """Write the page with all its data to one file; returns what had to be left out of it."""
    text = one_file(view)
    with atomic(path) as draft:
        draft.write_text(text, encoding="utf-8")
    return LEFT_OUT


def one_file(view: View) -> str:
    """The page as one text: its modules as data addresses, which an import map finds by name, and its data as JSON."""
    files = {name: content.decode() for name, content in page_files().items()}
    page = files["index.html"]
    addresses = {name: _module(name, content) for name, content in files.items() if name.endswith(".js")}
    main = addresses.pop("main.js")
    imports = json.dumps({"imports": addresses})
    data = json.dumps(collect(view)).replace("<", "\\u003c")  # no text can end the element that holds it
    page = page.replace('<link rel="stylesheet" href="app.css">', f"<style>\n{files['app.css']}</style>")
    page = page.replace("<head>\n", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n')
    scripts = (
        f'<script type="application/json" id="data">{data}</script>\n'
        f'<script type="importmap">{imports}</script>\n'
        f'<script type="module">import "{main}";</script>'
    )
    return page.replace('<script type="module" src="main.js"></script>', scripts)


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
