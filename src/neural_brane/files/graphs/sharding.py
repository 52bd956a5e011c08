"""Turn files larger than memory into a folder of parts."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural_brane.errors import GraphError, ShardError
from neural_brane.files.graphs.parts import (
    IDS,
    MANIFEST,
    NAMES,
    Manifest,
    Shards,
    describe_files,
    even_bounds,
    is_shards,
    open_shards,
    part_files,
    part_folder,
    write_series,
)
from neural_brane.files.graphs.sharding_names import Ids, in_order
from neural_brane.files.graphs.sharding_reading import EdgeSource, find_attributes, read_attributes, read_edges
from neural_brane.files.graphs.sharding_rows import AttributeEntries, EdgeEntries, Entries, Facts, RowsFiles, sort_range
from neural_brane.files.storage import atomic, check_writable
from neural_brane.graph.adjacency import Duplicates, SelfLoops, check_rules
from neural_brane.progress import Meter, Reporter

if TYPE_CHECKING:
    import polars as pl


# The unfinished work of a sharding: what has been done, of which sources, so that a second start goes on.

FOLDER, STATE, VERSION = ".unfinished", "state.json", 1
ENDS = 1 << 20  # bytes of a file's beginning and of its end that its digest is made of
SourceFacts = dict[str, Any]


def describe_source(path: Path) -> SourceFacts:
    """What tells whether a file has changed: its size, when it was written, and a digest of its two ends."""
    about = path.stat()
    digest = hashlib.sha256()
    with path.open("rb") as file:
        digest.update(file.read(ENDS))
        file.seek(max(about.st_size - ENDS, 0))
        digest.update(file.read(ENDS))
    return {"size": about.st_size, "written": about.st_mtime_ns, "digest": digest.hexdigest()[:16]}


class Work:
    """The folder of unfinished work inside the folder that is made; `done` has the facts of every finished stage."""

    def __init__(self, folder: Path, sources: Sequence[Path], options: SourceFacts) -> None:
        self.folder, self.home = folder, folder / FOLDER
        self.identity: SourceFacts = {
            "version": VERSION,
            "options": {name: str(value) for name, value in options.items() if value is not None},
            "sources": {str(path.resolve()): describe_source(path) for path in sources},
        }
        self.done: SourceFacts = {}
        if (self.home / STATE).exists():
            self._resume()
        else:
            shutil.rmtree(self.home, ignore_errors=True)
            self.home.mkdir(parents=True)
            self._write()

    def _resume(self) -> None:
        path = self.home / STATE
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            before, self.done = state["identity"], dict(state["done"])
        except (ValueError, KeyError, TypeError):
            raise ShardError(f"{path}: is damaged; remove {self.folder} and begin again") from None
        if before == self.identity:
            return
        for name, about in before.get("sources", {}).items():
            if self.identity["sources"].get(name, about) != about:
                raise ShardError(
                    f"{name}: has changed since {self.folder} was begun; remove {self.folder} and begin again"
                )
        raise ShardError(
            f"{self.folder}: was begun with {_spelled(before)}, not {_spelled(self.identity)}; "
            "give the same to go on, or remove the folder to begin again"
        )

    def finish(self, stage: str, facts: SourceFacts) -> None:
        """Note that a stage is done."""
        self.done[stage] = facts
        self._write()

    def _write(self) -> None:
        with atomic(self.home / STATE) as draft:
            draft.write_text(json.dumps({"identity": self.identity, "done": self.done}), encoding="utf-8")

    def remove(self) -> None:
        """Remove the folder of unfinished work."""
        shutil.rmtree(self.home, ignore_errors=True)


def _spelled(identity: SourceFacts) -> str:
    """The sources and options of a run in words."""
    options = [f"{name} {value}" for name, value in identity.get("options", {}).items()]
    return ", ".join([*(Path(name).name for name in identity.get("sources", {})), *options])


# Files larger than memory to a folder of parts: read once, number the names, deal the entries, sort range by range.
#
# The stages, each noted when it is done, so that a second start goes on after it:
#
#     edges        names become integers or numbers of their chunk, in files beside the weights
#     attributes   the same for the nodes and the attributes of entries
#     numbers      the names of all chunks get numbers
#     dealt        both directions of every edge, and every entry, are dealt to ranges of rows that fit into memory
#     part 0, …    ranges are sorted, repeats merged, and the rows written

MEMORY = 1_000_000_000  # bytes
LEAST = 1 << 16


@dataclass(frozen=True)
class Plan:
    """What is to be made of what."""

    edges: EdgeSource
    attributes: Path | None
    parts: int
    duplicates: Duplicates = "max"
    self_loops: SelfLoops = "keep"
    memory: int = MEMORY

    def check(self, folder: Path) -> None:
        """Refuse what cannot be done, before anything is."""
        check_rules(self.duplicates, self.self_loops)
        if self.parts < 1:
            raise ShardError(f"parts is {self.parts}; give a number from 1 on")
        if self.memory < LEAST:
            raise ShardError(f"memory is {self.memory:,} bytes; give at least {LEAST:,}, such as 1GB")
        if folder.exists() and not folder.is_dir():
            raise ShardError(f"{folder}: is a file; name a folder that is empty or does not exist")
        if is_shards(folder):
            raise ShardError(f"{folder}: holds a graph in parts already; choose another folder, or remove this one")
        if folder.is_dir() and not (folder / FOLDER).exists() and any(folder.iterdir()):
            raise ShardError(f"{folder}: is not empty; name a folder that is empty or does not exist")
        check_writable(folder / MANIFEST, ShardError)


def shard_files(
    plan: Plan, folder: str | Path, *, report: Reporter | None = None, tell: Callable[[str], object] | None = None
) -> Shards:
    """Make a folder of parts from files, with about `plan.memory` bytes for the work, and open it.

    A run that was stopped is gone on with: `tell` is told after which stage. `report` is told the progress.
    """
    folder = Path(folder)
    plan.check(folder)
    options = {**plan.edges.options, "attributes": plan.attributes, "parts": plan.parts, "memory": plan.memory}
    rules = {"duplicates": plan.duplicates, "self-loops": plan.self_loops}
    sources = [*plan.edges.files, *([plan.attributes] if plan.attributes else [])]
    work = Work(folder, sources, options | rules)
    if work.done and tell is not None:
        tell(f"{folder}: going on with a run that was stopped; done before: {', '.join(work.done)}")
    _Run(plan, folder, work, report).run()
    return open_shards(folder)


class _Run:
    """One sharding: the stages, in turn."""

    def __init__(self, plan: Plan, folder: Path, work: Work, report: Reporter | None) -> None:
        self.plan, self.folder, self.work, self.report = plan, folder, work, report
        self.nodes = Ids(work.home, "nodes", plan.memory)
        self.names = Ids(work.home, "attributes", plan.memory)
        self.edge_entries: EdgeEntries
        self.attribute_entries: AttributeEntries

    def run(self) -> None:
        """Do what is not done yet."""
        self._read()
        self._number()
        bounds = even_bounds(self.nodes.count, self.plan.parts)
        edges, entries = self.work.done["edges"], self.work.done["attributes"]
        self.edge_entries = EdgeEntries(self.work.home, self.nodes, edges, loops=self.plan.self_loops == "keep")
        self.attribute_entries = AttributeEntries(self.work.home, self.nodes, self.names, entries, self.plan.attributes)
        self._deal(bounds)
        for number in range(self.plan.parts):
            if f"part {number}" not in self.work.done:
                self._write_part(number, bounds)
        self._finish(bounds)
        self.work.remove()

    def _read(self) -> None:
        """Read the edges, then the attributes."""
        if "edges" in self.work.done:
            self.nodes.resume(self.work.done["edges"]["nodes"])
        else:
            meter = Meter(self.report, self.plan.edges.total, f"{self._unit()} of edges read", part="edges")
            quiet = self.plan.attributes is not None
            facts = read_edges(*self.plan.edges.read(), self.nodes, meter, quiet)
            if self.nodes.integer:
                self.nodes.number()
            self.work.finish("edges", facts | {"nodes": self.nodes.keep()})
        if "attributes" in self.work.done:
            self.nodes.resume(self.work.done["attributes"]["nodes"])
            self.names.resume(self.work.done["attributes"]["names"])
            return
        facts = {"chunks": 0, "first": self.nodes.chunks, "entries": 0}
        if self.plan.attributes is not None:
            blocks, total = find_attributes(self.plan.attributes)
            meter = Meter(self.report, total, "units of attributes read", part="attributes")
            facts = read_attributes(blocks, self.plan.attributes, self.nodes, self.names, meter)
        self.work.finish("attributes", facts | {"nodes": self.nodes.keep(), "names": self.names.keep()})

    def _unit(self) -> str:
        return "rows" if self.plan.edges.kind == "parquet" else "bytes"

    def _number(self) -> None:
        """Number nodes and attributes; refuse nodes that only attributes name, unless a header announces them."""
        if "numbers" in self.work.done:
            self.nodes.resume(self.work.done["numbers"]["nodes"])
            self.names.resume(self.work.done["numbers"]["names"])
            return
        self.nodes.number()
        self.names.number()
        announced = self.work.done["edges"]["announced"]
        linked = self.nodes.before(self.work.done["edges"]["chunks"])
        if announced is not None and self.nodes.count < announced:
            raise GraphError(
                f"{self.plan.edges.files[0]}: the header announces {announced} nodes, but only {self.nodes.count} are "
                "named; mend the header, or give each node without edges a line of its own"
            )
        if announced is not None and linked > announced:
            raise GraphError(
                f"{self.plan.edges.files[0]}: the header announces {announced} nodes, but the file names {linked}; "
                "mend the header"
            )
        if self.nodes.count > (most := linked if announced is None else announced):
            raise self._stranger(most)
        self.work.finish("numbers", {"nodes": self.nodes.keep(), "names": self.names.keep()})

    def _stranger(self, most: int) -> GraphError:
        from neural_brane.files.nodes import MEND_UNKNOWN

        name = self.nodes.appeared(most)
        return GraphError(f"{self.plan.attributes}: node '{name}' is not in the graph; {MEND_UNKNOWN}")

    def _deal(self, bounds: np.ndarray) -> None:
        """Deal the entries of both matrices to ranges of rows."""
        if "dealt" in self.work.done:
            return
        both: tuple[Entries, ...] = (self.edge_entries, self.attribute_entries)
        meter = Meter(self.report, sum(one.dealt.chunks for one in both), "chunks dealt", part="dealing")
        for one in both:
            one.choose_cuts(bounds, self.plan.memory)
            for _ in in_order(one.deal, range(one.dealt.chunks)):
                meter.advance()
            one.check_rows()
        self.work.finish("dealt", {})
        self.edge_entries.forget()

    def _write_part(self, number: int, bounds: np.ndarray) -> None:
        """Sort and write the rows of one part, its ids, and what the manifest shall say of it."""
        home, first, last = self.folder / part_folder(number), int(bounds[number]), int(bounds[number + 1])
        home.mkdir(exist_ok=True)
        add = self.plan.duplicates == "sum"
        weighed = "weights" if self.edge_entries.dealt.weighted or add else None
        edges = self._write_rows(RowsFiles(home, "adjacency", weighed), self.edge_entries, first, last, add=add)
        amounts = "amounts" if self.attribute_entries.dealt.weighted else None
        entries = self._write_rows(RowsFiles(home, "attributes", amounts), self.attribute_entries, first, last)
        write_series(home / IDS, "id", self._kind(self.nodes), self.nodes.series(first, last))
        files = part_files(number, weighted=weighed is not None, amounts=amounts is not None)
        facts = {"files": describe_files(self.folder, files), "edges": vars(edges), "entries": vars(entries)}
        self.work.finish(f"part {number}", facts)

    def _write_rows(self, files: RowsFiles, entries: Entries, first: int, last: int, *, add: bool = False) -> Facts:
        ranges = entries.ranges(first, last)
        meter = Meter(self.report, len(ranges), f"ranges of the part's {files.matrix} sorted", part=str(files.home))

        def work(number: int) -> Any:
            return sort_range(entries.dealt, number, entries.cuts, add=add, zeros=not entries.drop_zeros)

        with files:
            for rows in in_order(work, ranges):
                files.append(rows)
                meter.advance()
        return files.facts

    def _kind(self, ids: Ids) -> pl.DataType:
        import polars as pl

        return pl.Int64() if ids.kind == "integer" else pl.String()

    def _finish(self, bounds: np.ndarray) -> None:
        """Write the names of the attributes, take away files that say nothing, and write the manifest."""
        write_series(self.folder / NAMES, "name", self._kind(self.names), self.names.series(0, self.names.count))
        parts = [self.work.done[f"part {number}"] for number in range(self.plan.parts)]
        files = describe_files(self.folder, [NAMES])
        weighted = not all(part["edges"]["plain"] for part in parts)
        amounts = not all(part["entries"]["plain"] for part in parts)
        for number, part in enumerate(parts):
            wanted = part_files(number, weighted=weighted, amounts=amounts)
            files |= {name: about for name, about in part["files"].items() if name in wanted}
            for name in part["files"].keys() - set(wanted):
                (self.folder / name).unlink(missing_ok=True)
        entries = sum(part["edges"]["entries"] for part in parts)
        loops = sum(part["edges"]["loops"] for part in parts)
        if entries == 0:
            raise GraphError(f"{self.plan.edges.files[0]}: all edges are self-loops; keep them, or add edges")
        Manifest(
            name=self.plan.edges.name,
            nodes=self.nodes.count,
            edges=(entries + loops) // 2,
            attributes=self.names.count,
            entries=sum(part["entries"]["entries"] for part in parts),
            parts=self.plan.parts,
            bounds=bounds.tolist(),
            weighted=weighted,
            amounts=amounts,
            ids=self.nodes.kind,  # type: ignore[arg-type]
            files=files,
        ).write(self.folder)
