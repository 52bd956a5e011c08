"""The end of the programs of these tests."""

import os
import sys


def leave() -> None:
    """End this rank without the destructors of PyTorch's threads, which may abort it: `__main__.py` does the same."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
