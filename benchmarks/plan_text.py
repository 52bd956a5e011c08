"""Print the plan as Markdown tables."""

from collections.abc import Iterator
from typing import Any

from neural_brane.graph.memory import show_size

FEW, MANY = 256, 65_536  # triplets of a rank per step
RANKS = 64


def render(kept: dict[str, Any]) -> str:
    """Return all tables, one after another."""
    parts = [
        _rows(kept["rows"]), _balance(kept["balance"]), _growth(kept["growth"]), _memory(kept["memory"]),
        _traffic(kept["traffic"]), _networks(kept["networks"], kept["speeds"]), _hours(kept["hours"]),
        _hosts(kept["hosts"]),
    ]  # fmt: skip
    if kept.get("quality"):
        parts.append(_quality(kept["quality"]))
    return "\n\n".join(parts) + "\n"


def table(title: str, columns: tuple[str, ...], rows: Iterator[tuple[str, ...]] | list[tuple[str, ...]]) -> str:
    """Return a Markdown table under its title."""
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join([f"{title}\n", *("| " + " | ".join(line) + " |" for line in lines)])


def _pair(each: dict[str, float], digits: int = 1) -> str:
    return f"{each['attribute_rows']:,.{digits}f} + {each['neighbour_rows']:,.{digits}f}"


def _rows(rows: list[dict]) -> str:
    triplets = sorted({row["triplets"] for row in rows})
    lines = []
    for name in dict.fromkeys(row["graph"] for row in rows):
        own = [row for row in rows if row["graph"] == name]
        cells = [f"{_pair(row['per_triplet'])} ({_pair(row['foretold_over_counted'], 2)})" for row in own]
        lines.append((name, f"{own[0]['nodes']:,}", _pair(own[0]["unshared"]), *cells))
    return table(
        "Rows that a rank requests per triplet (attributes + neighbours), counted on drawn batches. In brackets: the "
        "number computed from degrees, divided by the counted one.",
        ("graph", "nodes", "if no row were shared", *(f"{count:,} triplets per rank" for count in triplets)),
        lines,
    )


def _balance(rows: list[dict]) -> str:
    kinds, measures = ("attribute_rows", "neighbour_rows"), ("busiest_asker", "busiest_owner", "away")
    lines = [
        (row["graph"], str(row["ranks"]), *(f"{row[kind][measure]:.2f}" for kind in kinds for measure in measures))
        for row in rows
    ]
    return table(
        f"Balance between ranks for one batch of {MANY:,} triplets in total: the most rows that one rank requests and "
        "that are requested from one owner, each divided by the mean, and the share of rows owned by another rank.",
        (
            "graph",
            "ranks",
            "attributes: by one rank",
            "from one owner",
            "other owner",
            "neighbours: by one rank",
            "from one owner",
            "other owner",
        ),
        lines,
    )


def _growth(rows: list[dict]) -> str:
    lines = []
    for nodes in sorted({row["nodes"] for row in rows}):
        cells = []
        for shape in dict.fromkeys(row["shape"] for row in rows):
            own = {row["triplets"]: row for row in rows if (row["shape"], row["nodes"]) == (shape, nodes)}
            cells += [_pair(own[count]["per_triplet"]) for count in (FEW, MANY)]
        lines.append((f"{nodes:,}", *cells))
    shapes = list(dict.fromkeys(row["shape"] for row in rows))
    return table(
        "Rows per triplet by the number of nodes, computed from degrees (on average 20 neighbours and 20 attributes "
        "per node), at two numbers of triplets per rank and step.",
        ("nodes", *(f"{shape}, {count:,}" for shape in shapes for count in (FEW, MANY))),
        lines,
    )


def _memory(rows: list[dict]) -> str:
    lines = []
    for row in rows:
        if row["model"] != "default" or row["shape"] == "debian's degrees":
            continue
        most = row["at_most"]
        own = ("spectral products", "sampling tables", "training", "vectors")
        cells = [show_size(most[name]) for name in own]
        lines.append((f"{row['nodes']:,}", row["shape"], str(row["ranks"]), show_size(row["graph"]),
                      show_size(row["moments"]["training"]["tables"]), *cells,
                      show_size(sum(row["host"].values()))))  # fmt: skip
    return table(
        f"Memory of a rank: default recipe, dim 150, {MANY:,} triplets per rank and step, a range of the graph's nodes "
        "per rank. The columns of the four moments, from 'spectral products' to 'vectors', are peaks. The first rank "
        "of a host makes the sampling tables.",
        ("nodes", "shape", "ranks", "range of the graph", "tables P and P'", "spectral products", "sampling tables",
         "training", "vectors", "a host's copy of the graph and sampling tables"),
        lines,
    )  # fmt: skip


def _traffic(rows: list[dict]) -> str:
    lines = []
    for row in rows:
        if row["ranks"] != RANKS:
            continue
        each = row["per_triplet"]
        cells = [show_size(each[name]) for name in ("ids", "lengths", "rows", "gradients", "graph")]
        lines.append((f"{row['nodes']:,}", row["shape"], row["model"], *cells, show_size(row["by_range"]),
                      show_size(row["by_range"] * MANY), show_size(row["spectral_bytes"])))  # fmt: skip
    return table(
        f"Bytes that one of {RANKS} ranks sends per triplet, by kind; it receives as many. A step has {MANY:,} "
        "triplets per rank. W and b add at most 3 bytes per triplet.",
        ("nodes", "shape", "model", "ids", "lengths of bags", "rows", "gradients", "graph by range", "total",
         "per step", "all products of the spectral part"),
        lines,
    )  # fmt: skip


def _networks(rows: list[dict], speeds: dict[str, dict]) -> str:
    lines = [
        (f"{row['nodes']:,}", row["shape"], row["model"], row["machine"], f"{row['triplets_per_second']:,.0f}",
         f"{row['gbit_per_second']:,.0f}", f"{row['gbit_per_second_by_range']:,.0f}")
        for row in rows
    ]  # fmt: skip
    sources = "; ".join(f"{name}: {one['triplets_per_second']:,.0f} ({one['source']})" for name, one in speeds.items())
    return table(
        "Gbit/s per rank at which sending takes as long as computing. Measured triplets per second: "
        f"{sources}; fewer are assumed if a triplet pools more bytes.",
        ("nodes", "shape", "model", "machine of a rank", "triplets per second", "Gbit/s", "Gbit/s, graph by range"),
        lines,
    )


def _hours(rows: list[dict]) -> str:
    networks = sorted({row["gbit_per_second"] for row in rows})
    keys = ("nodes", "shape", "ranks", "machine")
    lines = []
    shown = [row for row in rows if row["model"] == "default"]
    for key in dict.fromkeys(tuple(row[name] for name in keys) for row in shown):
        own = {row["gbit_per_second"]: row for row in shown if tuple(row[name] for name in keys) == key}
        cells = [_hour(own[gbit]) for gbit in networks]
        lines.append((f"{key[0]:,}", *map(str, key[1:]), *cells))
    return table(
        "Hours to train 300 triplets per node with the default recipe and, after the +, to send the spectral part's "
        "rows, if each rank uses all of its Gbit/s and keeps a range of the graph. * means that computing takes longer "
        "than sending. In brackets: hours without sending the lengths of bags.",
        (*keys, *(f"{gbit:,} Gbit/s" for gbit in networks)),
        lines,
    )


def _hosts(rows: list[dict]) -> str:
    lines = []
    for row in rows:
        cells = ("none suffice", "", "", "")
        if row["hosts"]:
            cells = (f"{row['hosts']:,}", f"{row['ranks']:,}", show_size(row["bytes"]), _hour(row))
        lines.append((f"{row['nodes']:,}", row["shape"], row["model"], row["host"], *cells))
    return table(
        f"The fewest hosts with enough memory, for 8 to 256 ranks with {MANY:,} triplets each; hours as above.",
        ("nodes", "shape", "model", "assumed hosts", "hosts", "ranks", "peak of a rank", "hours"),
        lines,
    )


def _hour(row: dict) -> str:
    star = "" if row["network_is_the_bound"] else "*"
    spectral = f" + {row['spectral_traffic']:.2g}" if row["spectral_traffic"] else ""
    return f"{_number(row['learned'])}{star} ({_number(row['learned_without_lengths'])}){spectral}"


def _number(value: float) -> str:
    return f"{value:.2g}" if value < 100 else f"{value:,.0f}"


def _quality(kept: dict) -> str:
    lines = [
        (f"{row['fraction']:.0%}", f"{row['triplets_per_node']:,.1f}", f"{row['macro_f1']:.4f}", f"{row['loss']:.4f}")
        for row in kept["rows"]
    ]
    return table(
        f"Scores by the number of triplets, on the largest available graph with classes, {kept['graph']}: default "
        "recipe, one seed, Macro-F1 at half the labels.",
        ("share of 300 per node", "triplets per node", "Macro-F1", "loss"),
        lines,
    )
