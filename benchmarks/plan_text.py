"""The plan's figures as tables for people."""

from collections.abc import Iterator
from typing import Any

from neural_brane.graph.memory import show_size

FEW, MANY = 256, 65_536  # triplets of a rank in a step
RANKS = 64


def tell(kept: dict[str, Any]) -> str:
    """All tables, one after another."""
    parts = [
        _rows(kept["rows"]), _balance(kept["balance"]), _growth(kept["growth"]), _memory(kept["memory"]),
        _traffic(kept["traffic"]), _networks(kept["networks"], kept["speeds"]), _hours(kept["hours"]),
        _hosts(kept["hosts"]),
    ]  # fmt: skip
    if kept.get("quality"):
        parts.append(_quality(kept["quality"]))
    return "\n\n".join(parts) + "\n"


def table(title: str, columns: tuple[str, ...], rows: Iterator[tuple[str, ...]] | list[tuple[str, ...]]) -> str:
    """A table in Markdown under its title."""
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
        "Rows that a rank asks for, for each of its triplets (attributes + neighbours), counted on drawn batches. In "
        "brackets: what follows from degrees alone, over what was counted.",
        ("graph", "nodes", "if none were shared", *(f"{count:,} triplets a rank" for count in triplets)),
        lines,
    )


def _balance(rows: list[dict]) -> str:
    kinds, whats = ("attribute_rows", "neighbour_rows"), ("busiest_asker", "busiest_owner", "away")
    lines = [
        (row["graph"], str(row["ranks"]), *(f"{row[kind][what]:.2f}" for kind in kinds for what in whats))
        for row in rows
    ]
    return table(
        f"How evenly one batch of {MANY:,} triplets in all falls on the ranks: the busiest rank over the mean, and the "
        "share of rows that another rank owns.",
        ("graph", "ranks", "attributes: asker", "owner", "away", "neighbours: asker", "owner", "away"),
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
        "How the rows for each triplet grow with the nodes, foretold from degrees (20 neighbours and 20 attributes a "
        "node on average), at two numbers of triplets a rank and step.",
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
        f"Memory of a rank, default recipe, dim 150, {MANY:,} triplets a rank and step, the graph by node range; the "
        "moments are peaks. Sampling tables are made by the first rank of a host.",
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
        f"What one of {RANKS} ranks sends for each of its triplets, by kind; it gets as many. A step has {MANY:,} "
        "triplets a rank. W and b add at most 3 bytes a triplet.",
        ("nodes", "shape", "model", "ids", "lengths of bags", "rows", "gradients", "graph by range", "in all",
         "in a step", "all products of the spectral part"),
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
        "The network for each rank, in Gbit/s, at which it stops being the bound. Triplets a second as measured: "
        f"{sources}; less where a triplet pools more bytes than there.",
        ("nodes", "shape", "model", "a rank is", "triplets a second", "Gbit/s", "Gbit/s, graph by range"),
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
        "Hours of 300 triplets a node with the default recipe and, after the +, of the spectral part's traffic, by the "
        "Gbit/s of each rank, all of it used, the graph by range. With * computing is the bound; in brackets without "
        "the lengths of bags.",
        (*keys, *(f"{gbit:,} Gbit/s" for gbit in networks)),
        lines,
    )


def _hosts(rows: list[dict]) -> str:
    lines = []
    for row in rows:
        cells = ("none of them", "", "", "")
        if row["hosts"]:
            cells = (f"{row['hosts']:,}", f"{row['ranks']:,}", show_size(row["bytes"]), _hour(row))
        lines.append((f"{row['nodes']:,}", row["shape"], row["model"], row["host"], *cells))
    return table(
        f"The fewest hosts, of 8 to 256 ranks with {MANY:,} triplets each, whose memory suffices; hours as above.",
        ("nodes", "shape", "model", "hosts that are assumed", "hosts", "ranks", "a rank at most", "hours"),
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
        f"How many triplets suffice on the largest graph with classes here, {kept['graph']}: default recipe, one seed, "
        "Macro-F1 at half the labels.",
        ("of 300 a node", "triplets a node", "Macro-F1", "loss"),
        lines,
    )
