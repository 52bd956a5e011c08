"""How a job ends that cannot go on: one rank says why, and the launcher starts nothing again.

A rank that fails leaves the others in the middle of a step; they fail for lack of it. These are no errors of their own:
only the first is told. A rank that was killed is another matter: then all end without a word, and are started again.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from neural_brane.cluster.launch import AGENT, FINAL

# What gloo, NCCL and PyTorch's store say where another rank is gone.
GONE = re.compile(r"gloo|NCCL|Connection (closed|reset|refused|was)|Broken pipe|Socket|failed to recv", re.IGNORECASE)
KEY, SAID = "neural-brane/error", "neural-brane/error was said"
PATIENCE = timedelta(seconds=10)


def is_consequence(error: BaseException) -> bool:
    """Whether an error only says that another rank is gone.

    >>> is_consequence(RuntimeError("[gloo/transport/tcp/pair.cc:544] Connection closed by peer [127.0.0.1]:1"))
    True
    >>> is_consequence(RuntimeError("shape mismatch"))
    False
    """
    return isinstance(error, RuntimeError) and GONE.search(str(error)) is not None


def is_first(store: Any, rank: int) -> bool:
    """Whether this rank is the first that has something to say of the end."""
    with suppress(RuntimeError):  # the store is gone with rank 0, which has said it
        return bool(store.compare_set(KEY, "", str(rank)) == str(rank).encode())
    return False


def has_said(store: Any) -> None:
    """Tell the others that the first has said it, and that they may end the job."""
    with suppress(RuntimeError):
        store.set(SAID, "1")


def wait_until_said(store: Any) -> None:
    """Let the first say it: a launcher that is told to end the job ends all ranks at once."""
    with suppress(RuntimeError):
        store.wait([SAID], PATIENCE)


def forgo_restarts(environment: Mapping[str, str] = os.environ) -> None:
    """Tell the launcher of this rank that starting it again would not help."""
    if agent := environment.get(AGENT):
        os.kill(int(agent), FINAL)
    elif environment.get("TORCHELASTIC_RUN_ID"):  # the parent is torchrun
        os.kill(os.getppid(), signal.SIGTERM)
