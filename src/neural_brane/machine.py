"""The machine that a measurement was made on, to be kept beside its results."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("neural-brane", "numpy", "scipy", "numba", "scikit-learn", "torch")


def describe_machine() -> dict[str, object]:
    """The processor, its cores and memory, and the versions of Python and of the packages that compute."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def machine_name(machine: dict[str, Any]) -> str:
    """A machine in one line: processor, cores, memory, GPU."""
    gpu = f", {machine['gpu']}" if "gpu" in machine else ""
    return f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB{gpu}"


def _processor(path: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name; one without a number stands for several, so its family and model are told too."""
    facts: dict[str, str] = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        name, _, value = line.partition(":")
        facts.setdefault(name.strip(), value.strip())
    name = facts.get("model name") or platform.processor() or platform.machine()
    if "cpu family" in facts and not any(letter.isdigit() for letter in name):
        return f"{name} (family {facts['cpu family']}, model {facts['model']})"
    return name


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
