"""Measure the available memory and the memory of a graph, and raise an error if something does not fit."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from neural_brane.errors import OutOfMemoryError

if TYPE_CHECKING:
    import numpy as np

    from neural_brane.graph.attributed import AttributedGraph

UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")
UNLIMITED = 1 << 60  # a larger number in a control group means that there is no limit


def available(root: str | Path = "/") -> int | None:
    """Return the bytes that machine, control group and `ulimit` leave, or None if `root` has no /proc and /sys."""
    known = [*_groups(Path(root)), *_process()]
    fields = _fields(Path(root) / "proc/meminfo")
    if "MemAvailable" in fields:
        known.append(1024 * (fields["MemAvailable"] + fields.get("SwapFree", 0)))
    elif hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        known.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    elif sys.platform == "win32":
        known.append(_windows())
    return max(min(known), 0) if known else None


def require_memory(needed: int, what: str, advice: str, *, room: int | None = None) -> None:
    """Raise an error if `needed` bytes exceed `room`, which is the available memory by default."""
    room = available() if room is None else room
    if room is not None and needed > room:
        found = f"{what} needs {show_size(needed)} of memory, but only {show_size(room)} is available;"
        raise OutOfMemoryError(f"{found} {advice}")


def show_size(count: float) -> str:
    """Return a number of bytes as text with a unit.

    >>> show_size(2_350_000_000)
    '2.4 GB'
    """
    for unit in UNITS[:-1]:
        if count < 999.5:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:,.1f} {UNITS[-1]}"


def parse_size(text: str) -> int | None:
    """Return the number of bytes in a text such as 2.5GB or 300 MB, or None if it is not a size.

    >>> parse_size("2.5GB"), parse_size("300 MB"), parse_size("much")
    (2500000000, 300000000, None)
    """
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kMGTP]?B|bytes)?", text.strip(), re.IGNORECASE)
    if found is None:
        return None
    unit = (found[2] or "bytes").lower()
    power = 0 if unit in ("b", "bytes") else [one.lower() for one in UNITS].index(unit)
    return int(float(found[1]) * 1000**power)


def used() -> int:
    """Return the bytes of memory that this process uses, or 0 if the system does not report them."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def _groups(root: Path) -> Iterator[int]:
    """Yield the bytes that each control group of this process, of version 1 or 2, still allows."""
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for _, kinds, path in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if kinds == "":
            (limit, usage, cache), home = ("memory.max", "memory.current", "inactive_file"), root / "sys/fs/cgroup"
        elif "memory" in kinds.split(","):
            limit, usage, cache = "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
            home = root / "sys/fs/cgroup/memory"
        else:
            continue
        own = home / path.lstrip("/")
        for folder in (own, *own.parents):  # the limits of all enclosing groups apply too
            most, now = _number(folder / limit), _number(folder / usage)
            if most is not None and now is not None and most < UNLIMITED:
                yield most - now + _fields(folder / "memory.stat").get(cache, 0)
            if folder == home:
                break


def _process() -> Iterator[int]:
    """Yield the bytes that the limits of this process still allow."""
    try:
        import resource
    except ModuleNotFoundError:
        return
    fields = _fields(Path("/proc/self/status"))
    for kind, name in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        most = resource.getrlimit(kind)[0]
        if most != resource.RLIM_INFINITY:
            yield most - 1024 * fields.get(name, 0)


def left_by_limits() -> int:
    """Return the bytes that the limits of this process, such as `ulimit -v`, still allow."""
    return min(_process(), default=sys.maxsize)


def _fields(path: Path) -> dict[str, int]:
    """Return the numbers in a file of lines 'name number' or 'name: number kB'; empty if the file is absent."""
    try:
        lines = [line.replace(":", " ").split() for line in path.read_text().splitlines()]
    except OSError:
        return {}
    return {line[0]: int(line[1]) for line in lines if len(line) > 1 and line[1].isdecimal()}


def _number(path: Path) -> int | None:
    try:
        text = path.read_text().strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def _windows() -> int:
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *((name, ctypes.c_ulonglong) for name in ("total", "free", "page_total", "page_free", "a", "b", "c")),
        )

    status = Status(length=ctypes.sizeof(Status))
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # type: ignore[attr-defined]
    return int(status.page_free)


ENTRY_BYTES = 8  # an int32 column and a float32 value
ID_BYTES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The sizes of a graph, on which memory and time depend; the graph need not be in memory.

    >>> Sizes(nodes=1_000_000, edges=10_000_000, attributes=100_000, attribute_entries=20_000_000).graph_bytes
    336800000
    """

    nodes: int
    edges: int
    attributes: int = 0
    attribute_entries: int = 0
    weighted: bool = False  # True if edges have different weights
    amounts: bool = False  # True if attribute entries have different values
    text_bytes: int = 0  # memory of labels, and of ids and names beyond ID_BYTES each

    @classmethod
    def from_graph(cls, graph: AttributedGraph) -> Sizes:
        """Return the sizes of a graph in memory."""
        texts = [graph.ids, graph.attribute_names, *([] if graph.labels is None else [graph.labels])]
        return cls(
            nodes=len(graph), edges=graph.edges, attributes=graph.attributes.shape[1],
            attribute_entries=graph.attributes.nnz, weighted=_differ(graph.adjacency.data),
            amounts=_differ(graph.attributes.data),
            text_bytes=max(sum(text.nbytes for text in texts) - ID_BYTES * sum(graph.attributes.shape), 0),
        )  # fmt: skip

    @property
    def links(self) -> int:
        """The number of entries of the adjacency: two per edge."""
        return 2 * self.edges

    @property
    def graph_bytes(self) -> int:
        """The memory of the graph in bytes."""
        entries = ENTRY_BYTES * (self.links + self.attribute_entries)
        return entries + 8 * self.nodes + ID_BYTES * (self.nodes + self.attributes) + self.text_bytes


def _differ(values: np.ndarray) -> bool:
    return len(values) > 0 and bool(values.min() != values.max())
