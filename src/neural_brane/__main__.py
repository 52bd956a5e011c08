"""Run the `brane` command as `python -m neural_brane`, as launchers start it on each rank."""

import logging
import os
import sys

from neural_brane.cli import main


def run() -> None:
    """Run the command. A rank exits without the destructors of PyTorch's threads, which could abort the process."""
    code: object = 0
    try:
        main()
    except SystemExit as leaving:
        if "TORCHELASTIC_RUN_ID" not in os.environ:
            raise
        code = leaving.code
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0 if code is None else 1)


if __name__ == "__main__":
    run()
