"""Which run a checkpoint belongs to: the method, its parameters and seed, the graph, and the code that computes it."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from neural_brane import __version__
from neural_brane.checkpoint.file import AFRESH
from neural_brane.errors import CheckpointError

COMPUTING = ("checkpoint", "kernels", "linalg", "methods", "sampling")  # the packages that decide what a step does
LIBRARIES = ("numpy", "scipy", "numba", "torch")  # on which the last bits of a step depend


def identify(
    method: str,
    parameters: Mapping[str, Any],
    seed: int,
    graph: Mapping[str, Any],
    *,
    computing: tuple[str, ...] = COMPUTING,
) -> dict[str, Any]:
    """What a run is, as JSON keeps it; `graph` tells its name, its size and its digest.

    computing: the packages of this one that decide what a step does.
    """
    about = {
        "method": method,
        "graph": graph,
        "parameters": parameters,
        "seed": seed,
        "version": __version__,
        "code": code_digest(computing),
        "libraries": _libraries(),
    }
    plain: dict[str, Any] = json.loads(json.dumps(about))
    return plain


def require_same(path: Path, was: Mapping[str, Any], now: Mapping[str, Any], free: tuple[str, ...]) -> None:
    """Refuse the checkpoint of another run and say what differs; parameters that are `free` may."""
    if was["method"] != now["method"]:
        raise _refusal(path, f"is of method '{was['method']}', not of '{now['method']}'")
    if was["graph"]["digest"] != now["graph"]["digest"]:
        raise _refusal(path, f"is of another graph: it was {_describe(was['graph'])}, now {_describe(now['graph'])}")
    values = [{"seed": one["seed"]} | one["parameters"] for one in (was, now)]
    for name in {**values[0], **values[1]}:
        before, after = (some.get(name) for some in values)
        if before != after and name not in free:
            what = f"is of another run: {name} was {before!r}, now {after!r}, and all its steps depend on it"
            raise _refusal(path, what, "give the earlier value to go on, ")
    if was["code"] != now["code"]:
        versions = [f"version {one['version']} (code {one['code']})" for one in (was, now)]
        what = f"was written by {versions[0]}, and this is {versions[1]}, whose steps may differ"
        raise _refusal(path, what, "finish it with the code that wrote it, ")
    changed = [name for name in LIBRARIES if was["libraries"].get(name) != now["libraries"].get(name)]
    if changed:
        told = ", ".join(f"{name} {was['libraries'].get(name)} → {now['libraries'].get(name)}" for name in changed)
        warnings.warn(
            f"{path}: the run goes on with other libraries than it began with ({told}); the last bits of its vectors "
            "may differ from those of a run that was never stopped",
            stacklevel=2,
        )


@cache
def code_digest(computing: tuple[str, ...] = COMPUTING) -> str:
    """Sixteen hexadecimal digits of the source that decides what a step computes: any change to it shows."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(path for name in computing for path in (root / name).rglob("*.py")):
        digest.update(f"{path.relative_to(root).as_posix()}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _libraries() -> dict[str, str]:
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def _describe(graph: Mapping[str, Any]) -> str:
    sizes = ", ".join(f"{graph[name]:,} {name}" for name in ("nodes", "edges", "attributes"))
    return f"'{graph['name']}' ({sizes}, digest {graph['digest']})"


def _refusal(path: Path, what: str, instead: str = "") -> CheckpointError:
    return CheckpointError(f"{path}: this checkpoint {what}; {instead}{AFRESH}")
