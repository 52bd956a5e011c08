"""Draw the paper's figures from results, as PNG files and as SVG files for the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural_brane.evaluate.map import COLOURS, MARKERS, draw_dots
from neural_brane.experiments.reproduce.plan import ATTRIBUTES, BOTH, CLUSTERED, COLUMNS, LINKS, MAPS, OURS
from neural_brane.experiments.reproduce.results import Cell, Results
from neural_brane.files.storage import atomic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, FAINT = "#24292f", "#8c959f"
BLUE, ORANGE, GREEN, RED = COLOURS[:4]
GROUPS = {LINKS: COLOURS[5], BOTH: BLUE, OURS: RED, ATTRIBUTES: GREEN}
HATCHES = {LINKS: "///", BOTH: "", OURS: "", ATTRIBUTES: "..."}
STYLE: dict[Any, Any] = {
    "font.size": 11, "axes.titlesize": 12, "axes.titleweight": "bold", "axes.labelsize": 11, "legend.fontsize": 10,
    "font.family": "DejaVu Sans", "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": INK,
    "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK, "axes.titlecolor": INK,
    "svg.fonttype": "path", "hatch.linewidth": 0.6, "legend.frameon": False, "axes.axisbelow": True,
}  # fmt: skip


def draw_all(results: Results, folder: Path) -> dict[str, Path]:
    """Draw every figure that the results have data for, as PNG and SVG; return the paths of the SVG files by name."""
    drawers: dict[str, Callable[[Results], Figure]] = {
        "clustering": clustering, "map": maps, "dimension": dimension, "convergence": convergence, "pooling": pooling,
    }  # fmt: skip
    drawn = {}
    for name, draw in drawers.items():
        if any(one.output == name for one in results.cells):
            drawn[name] = _save(draw, results, folder / f"{name}.svg")
    return drawn


def clustering(results: Results) -> Figure:
    """Draw bars of NMI and purity of every method, on the paper's two datasets if they were run."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    there = results.datasets("clustering")
    datasets = [name for name in CLUSTERED if name in there] or there
    figure, grid = _panels(len(datasets), 2, width=5.2, height=4.6)
    for row, dataset in zip(grid, datasets, strict=True):
        for axes, measure in zip(row, ("nmi", "purity"), strict=True):
            _method_bars(axes, results.find("clustering", measure, dataset=dataset))
            axes.set(title=dataset, xlabel="NMI" if measure == "nmi" else "Purity")
    groups = {one.group for one in results.cells if one.output == "clustering"}
    handles: list[Any] = [
        Patch(facecolor=GROUPS[group], hatch=HATCHES[group], edgecolor="white", linewidth=0, label=group)
        for group in GROUPS
        if group in groups
    ]
    handles.append(Line2D([], [], color=INK, linewidth=0, marker="|", markersize=12, markeredgewidth=2,
                          label="published"))  # fmt: skip
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _method_bars(axes: Axes, cells: Sequence[Cell]) -> None:
    places = np.arange(len(cells))
    axes.barh(
        places, [one.mean for one in cells], xerr=[one.sd for one in cells],
        color=[GROUPS[one.group] for one in cells], hatch=[HATCHES[one.group] for one in cells], edgecolor="white",
        linewidth=0, error_kw={"ecolor": INK, "elinewidth": 1, "capsize": 2},
    )  # fmt: skip
    for place, one in zip(places, cells, strict=True):
        end = one.mean + one.sd
        if one.comparable and one.published is not None:
            axes.plot([one.published] * 2, [place - 0.42, place + 0.42], color=INK, linewidth=2)
            end = max(end, one.published)
        axes.annotate(f"{one.mean:.3f}", (end, place), (4, 0), va="center", fontsize=9, textcoords="offset points")
    axes.set_yticks(places, [one.heading for one in cells], fontsize=10)
    axes.invert_yaxis()
    axes.margins(x=0.16)
    axes.set_xlim(left=0)


def dimension(results: Results) -> Figure:
    """Draw Macro-F1 at 70 % by dimension, one line with a band per dataset."""
    figure, [[axes]] = _panels(1, 1, width=7.5, height=4.4)
    for k, dataset in enumerate(results.datasets("dimension")):
        points = results.find("dimension", "macro_f1", dataset=dataset, train=0.7)
        _band(axes, k, dataset, [one.setting["dim"] for one in points], [(one.mean, one.sd) for one in points])
    axes.set(xlabel="dimension", ylabel="Macro-F1 (train 70 %)")
    axes.set_xticks(sorted({one.setting["dim"] for one in results.cells if one.output == "dimension"}))
    _side_legend(axes)
    return figure


def convergence(results: Results) -> Figure:
    """Draw the loss by epoch, one line with a band per dataset."""
    from matplotlib.ticker import MaxNLocator

    figure, grid = _panels(1, 1, width=7.5, height=4.4)
    for k, cell in enumerate(results.find("convergence", "loss")):
        epochs = range(1, len(cell.curve) + 1)
        _band(grid[0][0], k, cell.dataset, list(epochs), [(mean, sd) for mean, sd in cell.curve])
    grid[0][0].set(xlabel="epoch", ylabel="loss (mean of −ln σ)")
    grid[0][0].xaxis.set_major_locator(MaxNLocator(integer=True))
    _side_legend(grid[0][0])
    return figure


def _band(axes: Axes, k: int, label: str, x: Sequence[float], points: Sequence[tuple[float, float]]) -> None:
    mean, sd = np.array(points).T
    colour = (BLUE, ORANGE, GREEN, RED, *COLOURS[4:])[k % 7]
    axes.fill_between(x, mean - sd, mean + sd, color=colour, alpha=0.2, linewidth=0)
    axes.plot(x, mean, color=colour, marker=MARKERS[k % len(MARKERS)], linewidth=2, markersize=6, label=label)


def _side_legend(axes: Axes) -> None:
    axes.grid(axis="y", color=FAINT, alpha=0.35, linewidth=0.7)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


def pooling(results: Results) -> Figure:
    """Draw bars of max pooling beside sum pooling, at 70 %, for every dataset."""
    figure, grid = _panels(1, 1, width=7.5, height=4.2)
    axes, datasets = grid[0][0], results.datasets("pooling")
    looks = {"max": (RED, ""), "sum": (COLOURS[5], "///")}
    for k, (how, (colour, hatch)) in enumerate(looks.items()):
        found = [results.find("pooling", "macro_f1", dataset=name, train=0.7, pooling=how) for name in datasets]
        places = np.arange(len(datasets)) + 0.38 * k - 0.19
        means, sds = ([getattr(one[0], part) if one else 0.0 for one in found] for part in ("mean", "sd"))
        bars = axes.bar(places, means, 0.34, yerr=sds, color=colour, hatch=hatch, edgecolor="white", linewidth=0,
                        label=f"{how} pooling", error_kw={"ecolor": INK, "capsize": 3})  # fmt: skip
        axes.bar_label(bars, [f"{mean:.3f}" if mean else "failed" for mean in means], padding=3, fontsize=9)
    axes.set_xticks(np.arange(len(datasets)), datasets)
    axes.set(ylabel="Macro-F1 (train 70 %)")
    axes.margins(x=0.12 / max(len(datasets), 1), y=0.12)
    _side_legend(axes)
    return figure


def maps(results: Results) -> Figure:
    """Draw the nodes in two dimensions by t-SNE, one row per dataset and one column per method."""
    datasets = list(dict.fromkeys(dataset for dataset, _ in results.maps))
    shown = [name for name in MAPS if any(column == name for _, column in results.maps)]
    heading = {column.name: column.heading if column.group != OURS else OURS for column in COLUMNS}
    figure, grid = _panels(len(datasets), len(shown), width=3.5, height=3.4)
    for row, dataset in zip(grid, datasets, strict=True):
        for axes, name in zip(row, shown, strict=True):
            if (dataset, name) in results.maps:
                picture = results.maps[dataset, name]
                draw_dots(axes, np.array(picture["points"]), np.array(picture["labels"]))
                if axes is not row[-1] and (legend := axes.get_legend()):
                    legend.remove()  # the legend of the last map serves the whole row
            axes.set(title=f"{heading[name]}, {dataset}", xticks=[], yticks=[], xlabel="t-SNE 1", ylabel="t-SNE 2")
            axes.spines[:].set_visible(True)
    return figure


def _panels(rows: int, columns: int, *, width: float, height: float) -> tuple[Figure, list[list[Axes]]]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), dpi=160, layout="constrained")
    FigureCanvasAgg(figure)  # draws without a display
    grid = figure.subplots(rows, columns, squeeze=False)
    return figure, [list(row) for row in grid]


def _save(draw: Callable[[Results], Figure], results: Results, path: Path) -> Path:
    """Write a figure as SVG and as PNG; equal results give equal bytes."""
    import matplotlib

    with matplotlib.rc_context(STYLE | {"svg.hashsalt": path.stem}):
        figure = draw(results)
        with atomic(path) as draft:
            figure.savefig(draft, format="svg", transparent=True, metadata={"Date": None})
        with atomic(path.with_suffix(".png")) as draft:
            figure.savefig(draft, format="png", metadata={"Software": None})
    return path
