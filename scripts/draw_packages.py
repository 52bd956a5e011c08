"""Draw the packages of the source and who imports whom: docs/packages.svg.

    python scripts/draw_packages.py           write the picture
    python scripts/draw_packages.py --list    print the arrows

Every arrow is found by reading the import statements, wherever in a file they stand. The picture's <desc> lists them
all. Only those are drawn that do not follow from others: where a imports b and b imports c, an arrow from a to c says
nothing new about the order.
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
BOX_WIDTH, BOX_HEIGHT, GAP, ROW = 196, 74, 24, 126  # in pixels; ROW is from one layer to the next
BEND_WIDTH = 24  # what an arrow takes up in a layer that it passes through
EVERYWHERE = ("__init__", "__main__", "errors", "progress")
STARTS, SWEEPS = 200, 12  # of the search for an order within layers

Arrow = tuple[str, str]


def parts(source: Path) -> dict[str, Path]:
    """The rooms of the house by name, each with the file that describes it.

    Files that every room imports would only add arrows, so they are left out.
    """
    folders = {path.parent.name: path for path in source.glob("*/__init__.py")}
    files = {path.stem: path for path in source.glob("*.py") if path.stem not in EVERYWHERE}
    return dict(sorted((folders | files).items()))


def arrows(source: Path = SOURCE) -> list[Arrow]:
    """Who imports whom, as sorted pairs of names."""
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
    """The first names after `neural_brane.` that a file imports, or the public names it takes from the top."""
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
    """The arrows that can all point one way, and those that close a circle with them."""
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
    """The layer of each package: 0 on top, and each as near as possible to those that import it."""
    below = {name: at for at, group in enumerate(nx.topological_generations(graph)) for name in group}
    return {name: max(below.values()) - at for name, at in below.items()}


def place(graph: nx.DiGraph, layer: dict[str, int]) -> tuple[dict[str, tuple[float, float]], list[list[str]]]:
    """Positions of the boxes, and the arrows as paths through a bend in each layer between."""
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
    """The rows in an order with short lines: the best of many random starts, each improved by sweeps."""
    best, least = rows, float("inf")
    for start in range(STARTS):
        rng = random.Random(start)
        order = [rng.sample(row, len(row)) for row in rows]
        for sweep in range(SWEEPS):
            centres = _spread(order)
            wanted = {name: sum(centres[other] for other in near) / len(near) for name, near in links.items() if near}
            for row in order[sweep % 2 :: 2]:  # every other row, so that two rows do not change places forever
                row.sort(key=lambda name: (wanted.get(name, 0.0), name))
            centres = _spread(order)
            length = sum((centres[name] - centres[other]) ** 2 for name, near in links.items() for other in near)
            if length < least:
                best, least = [list(row) for row in order], length
    return best


def _spread(rows: list[list[str]]) -> dict[str, float]:
    """The horizontal centres when each row stands in its order around the middle, without overlap."""
    centres = {}
    for row in rows:
        widths = [BEND_WIDTH if "@" in name else BOX_WIDTH for name in row]
        left = -(sum(widths) + GAP * (len(row) - 1)) / 2
        for name, width in zip(row, widths, strict=True):
            centres[name] = left + width / 2
            left += width + GAP
    return centres


def svg(source: Path = SOURCE) -> str:
    """The picture as text."""
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
    """A line from the top of the first box up to the bottom of the last, through the bends between them."""
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
    """A package's name and, under it, the first sentence of its docstring."""
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
