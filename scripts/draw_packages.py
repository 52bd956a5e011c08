"""Draw the packages of the source and their imports: docs/packages.svg.

    python scripts/draw_packages.py           write the picture
    python scripts/draw_packages.py --list    print the arrows

The arrows come from all import statements of a file, also those inside functions. The picture's <desc> lists them all.
Arrows that follow from others are not drawn: if a imports b and b imports c, the arrow from a to c is left out.
"""

from __future__ import annotations

import argparse
import ast
import random
import textwrap
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

import networkx as nx

from neural_brane.files.storage import atomic

ROOT = Path(__file__).parent.parent
SOURCE, PICTURE = ROOT / "src" / "neural_brane", ROOT / "docs" / "packages.svg"
BOX_WIDTH, BOX_HEIGHT, GAP, ROW = 196, 74, 24, 126  # pixels; ROW is the distance between two layers
BEND_WIDTH = 24  # width of an arrow in a layer that it crosses
EVERYWHERE = ("__init__", "__main__", "errors", "progress")
STARTS, SWEEPS = 200, 12  # random starts of the search for an order within layers, and sweeps of each

Arrow = tuple[str, str]


def parts(source: Path) -> dict[str, Path]:
    """Return the packages and top-level modules by name, each with the file whose docstring describes it.

    Files that every package imports would only add arrows, so they are left out.
    """
    folders = {path.parent.name: path for path in source.glob("*/__init__.py")}
    files = {path.stem: path for path in source.glob("*.py") if path.stem not in EVERYWHERE}
    return dict(sorted((folders | files).items()))


def arrows(source: Path = SOURCE) -> list[Arrow]:
    """Return sorted pairs of names; the first imports the second."""
    known = set(parts(source))
    homes = {
        alias.name: node.module.split(".")[1]
        for node in ast.walk(ast.parse((source / "__init__.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("neural_brane.")
        for alias in node.names
    }
    found: set[Arrow] = set()
    for path in source.rglob("*.py"):
        here = path.relative_to(source).parts[0].removesuffix(".py")
        for name in _imported(path):
            there = homes.get(name, name)
            if here in known and there in known and here != there:
                found.add((here, there))
    return sorted(found)


def _imported(path: Path) -> set[str]:
    """Return the packages that a file imports, and the public names that it imports from `neural_brane`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "neural_brane":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("neural_brane."):
            names.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("neural_brane.")}
    return names


def split_circles(found: list[Arrow]) -> tuple[nx.DiGraph, list[Arrow]]:
    """Return a graph of arrows without cycles, and the arrows that would close a cycle."""
    graph, closing = nx.DiGraph(), []
    graph.add_nodes_from(name for arrow in found for name in arrow)
    most_imported = sorted(found, key=lambda arrow: (-sum(there == arrow[1] for _, there in found), arrow))
    for here, there in most_imported:
        if nx.has_path(graph, there, here):
            closing.append((here, there))
        else:
            graph.add_edge(here, there)
    return graph, closing


def layers(graph: nx.DiGraph) -> dict[str, int]:
    """Return the layer of each package: 0 is on top, and each is as close as possible to those that import it."""
    below = {name: at for at, group in enumerate(nx.topological_generations(graph)) for name in group}
    return {name: max(below.values()) - at for name, at in below.items()}


def place(graph: nx.DiGraph, layer: dict[str, int]) -> tuple[dict[str, tuple[float, float]], list[list[str]]]:
    """Return the positions of boxes and bends, and the arrows as paths with one bend per crossed layer."""
    rows: list[list[str]] = [[] for _ in range(max(layer.values()) + 1)]
    for name in sorted(layer):
        rows[layer[name]].append(name)
    paths = []
    for here, there in sorted(graph.edges):
        bends = [f"{here}>{there}@{at}" for at in range(layer[here] - 1, layer[there], -1)]
        for bend in bends:
            rows[int(bend.split("@")[1])].append(bend)
        paths.append([here, *bends, there])
    links: dict[str, set[str]] = {name: set() for row in rows for name in row}
    for path in paths:
        for one, other in pairwise(path):
            links[one].add(other)
            links[other].add(one)
    rows = _untangle(rows, links)
    centres = _spread(rows)
    depth = {name: at for at, row in enumerate(rows) for name in row}
    return {name: (centres[name], depth[name] * ROW + BOX_HEIGHT / 2) for name in links}, paths


def _untangle(rows: list[list[str]], links: dict[str, set[str]]) -> list[list[str]]:
    """Return the rows in an order with short arrows: the best of many random starts, each improved by sweeps."""
    best, least = rows, float("inf")
    for start in range(STARTS):
        rng = random.Random(start)
        order = [rng.sample(row, len(row)) for row in rows]
        for sweep in range(SWEEPS):
            centres = _spread(order)
            wanted = {name: sum(centres[other] for other in near) / len(near) for name, near in links.items() if near}
            for row in order[sweep % 2 :: 2]:  # alternate rows, because sorting neighbours together may oscillate
                row.sort(key=lambda name: (wanted.get(name, 0.0), name))
            centres = _spread(order)
            length = sum((centres[name] - centres[other]) ** 2 for name, near in links.items() for other in near)
            if length < least:
                best, least = [list(row) for row in order], length
    return best


def _spread(rows: list[list[str]]) -> dict[str, float]:
    """Return the horizontal centres of all boxes and bends; each row is centred and has no overlap."""
    centres = {}
    for row in rows:
        widths = [BEND_WIDTH if "@" in name else BOX_WIDTH for name in row]
        left = -(sum(widths) + GAP * (len(row) - 1)) / 2
        for name, width in zip(row, widths, strict=True):
            centres[name] = left + width / 2
            left += width + GAP
    return centres


def svg(source: Path = SOURCE) -> str:
    """Return the picture as SVG text."""
    found, files = arrows(source), parts(source)
    graph, closing = split_circles(found)
    order = nx.transitive_reduction(graph)
    layer = layers(order)
    positions, paths = place(order, layer)
    left = min(x for x, _ in positions.values()) - BOX_WIDTH / 2 - GAP
    right = max(x for x, _ in positions.values()) + BOX_WIDTH / 2 + GAP
    height = max(layer.values()) * ROW + BOX_HEIGHT + 32
    listed = "\n".join(f"{here} -> {there}" for here, there in found)
    drawn = [_curve([positions[name] for name in path]) for path in paths]
    drawn += [_curve([positions[here], positions[there]], "closing") for here, there in closing]
    boxes = [_box(name, positions[name], files[name]) for name in sorted(layer)]
    return "\n".join([_head(left, right - left, height, listed), *drawn, *boxes, "</svg>", ""])


def _head(left: float, width: float, height: float, listed: str) -> str:
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:g} -16 {width:g} {height:g}" role="img">
<title>The packages of neural_brane; an arrow points to what a package imports</title>
<desc>
{escape(listed)}
</desc>
<style>
text {{ font: 11px system-ui, sans-serif; fill: #33415c; text-anchor: middle }}
.name {{ font-weight: 600; font-size: 15px; fill: #14213d }}
.box {{ fill: #f3f6fb; stroke: #7a8cab }}
.arrow {{ fill: none; stroke: #5c6f91; stroke-width: 1.4; marker-end: url(#tip) }}
.closing {{ stroke: #c1121f; stroke-dasharray: 5 4 }}
</style>
<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">\
<path d="M0 0 8 4 0 8z" fill="#5c6f91"/></marker>
<rect x="{left:g}" y="-16" width="{width:g}" height="{height:g}" fill="#fff"/>"""


def _curve(points: list[tuple[float, float]], kind: str = "") -> str:
    """Return a line from the top of the first box to the bottom of the last, through the bends between them."""
    half = BOX_HEIGHT / 2
    (x, y), (end_x, end_y) = points[0], points[-1]
    text, at = f"M{x:g} {y - half:g}", (x, y - half)
    for stop_x, stop_y in [*points[1:-1], (end_x, end_y)]:
        middle = (at[1] + stop_y + half) / 2
        text += f" C{at[0]:g} {middle:g} {stop_x:g} {middle:g} {stop_x:g} {stop_y + half:g}"
        at = (stop_x, stop_y - half)
        if (stop_x, stop_y) != (end_x, end_y):
            text += f" V{at[1]:g}"  # straight past the boxes of this layer
    return f'<path class="arrow {kind}" d="{text}"/>'.replace(' "', '"')


def _box(name: str, centre: tuple[float, float], file: Path) -> str:
    """Return a box with a package's name and the first sentence of its docstring."""
    x, y = centre
    sentence = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").splitlines()[0]
    lines = textwrap.wrap(sentence.rstrip(".").replace("`", ""), 30, max_lines=3, placeholder=" …")
    top = y - BOX_HEIGHT / 2
    words = "".join(
        f'<text x="{x:g}" y="{top + 36 + 13 * at:g}">{escape(line)}</text>' for at, line in enumerate(lines)
    )
    rect = f'<rect class="box" x="{x - BOX_WIDTH / 2:g}" y="{top:g}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="7"/>'
    return f'{rect}<text class="name" x="{x:g}" y="{top + 19:g}">{name}</text>{words}'


def main() -> None:
    """Write the picture, or print its arrows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the arrows and draw nothing")
    if parser.parse_args().list:
        print("\n".join(f"{here} -> {there}" for here, there in arrows()))
    else:
        with atomic(PICTURE) as draft:
            draft.write_text(svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
