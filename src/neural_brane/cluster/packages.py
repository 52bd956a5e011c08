"""The packages that a cluster needs: whether they are installed, and in versions that load together.

They are released apart and work only in threes: another FBGEMM than the one made for a PyTorch does not load. TorchRec
asks for FBGEMM's build for NVIDIA by name, so pip must be told not to follow what it asks for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from neural_brane.errors import DependencyError

TOGETHER = {"torch": "2.13.", "tensordict": "", "pyre-extensions": "", "torchrec": "1.8."}  # how their versions begin
FBGEMM = ("fbgemm-gpu-cpu", "fbgemm-gpu"), "1.8."  # either build will do
INSTALL = (
    "pip install 'neural-brane[cluster]' && pip install --no-deps torchrec==1.8.0 fbgemm-gpu-cpu==1.8.0 "
    "(for NVIDIA GPUs fbgemm-gpu==1.8.0 as the last)"
)


def import_torchrec() -> Any:
    """The torchrec module, or an error that says what is missing and how to get it."""
    require_packages()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of packages of theirs that are not there
            import torchrec
    except (ImportError, OSError) as error:
        raise DependencyError(f"TorchRec is installed and does not load ({error}); run: {INSTALL}") from error
    return torchrec


def require_packages(installed: Callable[[str], str] = version) -> None:
    """Refuse to go on where a package is missing or of a version that does not fit; imports nothing.

    installed: tells the version of a package, or raises PackageNotFoundError.
    """
    wrong = [text for name, begins in TOGETHER.items() if (text := _what_is_wrong(name, begins, installed))]
    names, begins = FBGEMM
    builds = [_what_is_wrong(name, begins, installed) for name in names]
    if all(builds):
        wrong.append(next((text for text in builds if text and "not installed" not in text), str(builds[0])))
    if wrong:
        raise DependencyError(f"a cluster needs packages that load together, and {'; '.join(wrong)}; run: {INSTALL}")


def _what_is_wrong(name: str, begins: str, installed: Callable[[str], str]) -> str | None:
    """What is wrong with a package in a few words; None where nothing is."""
    try:
        found = installed(name)
    except PackageNotFoundError:
        return f"{name} is not installed"
    return None if found.startswith(begins) else f"{name} is {found}, not {begins}x"
