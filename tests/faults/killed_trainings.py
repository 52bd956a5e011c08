"""Train again and again in processes that are killed, and print as JSON how it went.

    python killed_trainings.py METHOD FOLDER KILLS SEED

Each process resumes from the checkpoint in FOLDER. Some are killed from outside at a random moment. Others kill
themselves while they write the checkpoint, or before they rename it, because we replace these functions in them. A
training that ends nevertheless is compared with an undisturbed one, its files are removed, and another begins, until
KILLS processes were killed and the last training has ended. Processes are forked from one that has imported everything
and computed nothing.
"""

import json
import math
import os
import signal
import sys
import time
import traceback
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse

from neural_brane import METHODS, AttributedGraph, Embedding
from neural_brane.files import tensors
from neural_brane.files.checkpoints import Checkpoint
from neural_brane.methods import base

SETTINGS = {
    "neural-brane": {"dim": 16, "epochs": 10, "batches_per_epoch": 50, "batch_size": 500},
    "deepwalk": {"dim": 16, "epochs": 25, "walks_per_node": 1, "walk_length": 20, "window": 4},
    "nnmf": {"dim": 16, "epochs": 60},
}
WAYS = ("at a random moment", "in the middle of a write", "between writing and renaming")


def small_graph() -> AttributedGraph:
    """Return a graph of a hundred nodes, made without any of the kernels that start threads."""
    rng = np.random.default_rng(0)
    links = sparse.random_array((100, 100), density=0.05, rng=rng) + sparse.diags_array(np.ones(99), offsets=1)
    return AttributedGraph.from_sparse(links + links.T, sparse.random_array((100, 30), density=0.1, rng=rng))


def die(*_: object) -> None:
    """Kill this process."""
    os.kill(os.getpid(), signal.SIGKILL)


class Dying:
    """An open file that kills the process when some of its bytes are written."""

    def __init__(self, path: Path, mode: str):
        self.real = open(path, mode)  # noqa: SIM115

    def __enter__(self) -> "Dying":
        return self

    def __exit__(self, *error: object) -> None:
        self.real.close()

    def write(self, content: memoryview) -> None:
        """Write half of the content and die."""
        self.real.write(content[: len(content) // 2])
        self.real.flush()
        die()


def train(method: str, folder: Path, way: str, after: int) -> None:
    """Resume from the checkpoint; die in this way after `after` writes of the checkpoint."""
    warnings.simplefilter("ignore")
    base.Checkpoint = partial(Checkpoint, interval=0, share=math.inf)  # saves after every step
    plain, count = tensors.write, iter(range(10**9))

    def write(*arguments: object) -> None:
        last = next(count) >= after
        if last and way == WAYS[1]:
            tensors.open = Dying
        elif last and way == WAYS[2]:
            os.replace = die
        plain(*arguments)

    tensors.write = write
    model = METHODS[method](checkpoint=folder / "run.checkpoint", threads=1, **SETTINGS[method])
    model.fit_transform(small_graph()).save(folder / "vectors.npz")


def fork(task: partial) -> int:
    """Run a task in a forked process; return its number."""
    process = os.fork()
    if process == 0:
        code = 1
        try:
            task()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return process


def wait(process: int, seconds: float) -> bool:
    """Return whether a process ends by itself within some seconds; if not, kill it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended, status = os.waitpid(process, os.WNOHANG)
        if ended:
            if os.WIFEXITED(status) and os.WEXITSTATUS(status):
                raise RuntimeError(f"a training ended with code {os.WEXITSTATUS(status)}")
            return os.WIFEXITED(status)
        time.sleep(0.001)
    os.kill(process, signal.SIGKILL)
    return os.WIFEXITED(os.waitpid(process, 0)[1])


def undisturbed(method: str, folder: Path) -> tuple[np.ndarray, float]:
    """Return the vectors and the seconds of an undisturbed training; an earlier one compiles the kernels."""
    for _ in range(2):
        begun = time.monotonic()
        assert wait(fork(partial(train, method, folder, "", 0)), 600)
        seconds = time.monotonic() - begun
        vectors = remove_all(folder)
    return vectors, seconds


def remove_all(folder: Path) -> np.ndarray:
    """Remove the two files of a training that has ended, and return its vectors."""
    names = sorted(path.name for path in folder.iterdir())
    if names != ["run.checkpoint", "vectors.npz"]:
        raise RuntimeError(f"files were left behind: {names}")
    vectors = Embedding.load(folder / "vectors.npz").vectors
    for name in names:
        (folder / name).unlink()
    return vectors


def main(method: str, folder: Path, kills: int, seed: int) -> None:
    """Train, kill and resume."""
    chance, counts, ended = np.random.default_rng(seed), dict.fromkeys(WAYS, 0), 0
    SETTINGS[method]["seed"] = seed
    whole, seconds = undisturbed(method, folder)
    while True:
        way = WAYS[sum(counts.values()) % 3] if sum(counts.values()) < kills else ""
        limit = chance.uniform(0, seconds) if way == WAYS[0] else 600
        if not wait(fork(partial(train, method, folder, way, int(chance.integers(6)))), limit):
            counts[way] += 1
            continue
        ended += 1
        if not np.array_equal(remove_all(folder), whole):
            raise RuntimeError(f"training {ended} ended with other vectors after kills {counts}")
        if not way:
            break
    print(json.dumps({"kills": counts, "ended": ended}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
