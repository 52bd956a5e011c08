"""Join the job that a launcher has started, or start one on this machine; end it so that one rank says why."""

from __future__ import annotations

import logging
import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from neural_brane.errors import BraneError, DependencyError, ParameterError

# PyTorch, TorchRec and FBGEMM load only in versions made for one another. TorchRec requires FBGEMM's build for NVIDIA,
# so pip must ignore its requirements.

TOGETHER = {"torch": "2.13.", "tensordict": "", "pyre-extensions": "", "torchrec": "1.8."}  # how their versions begin
FBGEMM = ("fbgemm-gpu-cpu", "fbgemm-gpu"), "1.8."  # either build will do
INSTALL = (
    "pip install 'neural-brane[distributed]' && pip install --no-deps torchrec==1.8.0 fbgemm-gpu-cpu==1.8.0 "
    "(for NVIDIA GPUs fbgemm-gpu==1.8.0 as the last)"
)


def require_packages(installed: Callable[[str], str] = version) -> None:
    """Refuse to go on where a package is missing or of a version that does not fit; imports nothing.

    installed: returns the version of a package, or raises PackageNotFoundError.
    """

    def check(name: str, begins: str) -> str | None:
        try:
            found = installed(name)
        except PackageNotFoundError:
            return f"{name} is not installed"
        return None if found.startswith(begins) else f"{name} is {found}, not {begins}x"

    wrong = [text for name, begins in TOGETHER.items() if (text := check(name, begins))]
    names, begins = FBGEMM
    builds = [check(name, begins) for name in names]
    if all(builds):
        wrong.append(next((text for text in builds if text and "not installed" not in text), str(builds[0])))
    if wrong:
        raise DependencyError(
            f"distributed training needs packages that load together, and {'; '.join(wrong)}; run: {INSTALL}"
        )


# torchrun restarts a job that loses a rank, and PyTorch then finds the addresses of dead ranks in the store that its
# agents share; gloo fails or waits for ever. Agents that we start make a new store each time. Under any other agent,
# rank 0 opens a store of its own, and writes its address to the agent's.

NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what every launcher sets
RESTARTS = 10  # of all ranks, after which a job on this machine gives up
PATIENCE = timedelta(minutes=10)  # how long a rank waits for another inside a step
MEETING = 60.0  # seconds to find the store of rank 0
AGENT = "NEURAL_BRANE_AGENT"  # the process that starts the ranks of a job, where it is ours
FINAL = signal.SIGUSR1  # tells it that starting them again would not help
ADVICE = (
    "torchrun was started with a store that restarts share: a killed rank is replaced, a lost host is not; start it "
    "with TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in its environment and --rdzv-backend c10d"
)


class RankError(BraneError):
    """A rank of a job was killed too often."""


@dataclass(frozen=True)
class Job:
    """This process's place in a job."""

    rank: int
    ranks: int
    local_rank: int  # among the ranks of this host
    local_ranks: int
    device: str  # cpu, or the GPU of this rank
    threads: int  # of this rank on the CPU
    store: Any  # that all ranks of this start share
    group: Any  # of all ranks, on the CPU

    def wait_for_all(self) -> None:
        """Go on when all ranks have come here."""
        import torch.distributed as dist

        dist.barrier(self.group)


def count(ranks: int) -> str:
    """A number of ranks in words."""
    return "1 rank" if ranks == 1 else f"{ranks} ranks"


def is_launched(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this process is a rank of a job that torchrun or another launcher has started.

    >>> is_launched({"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"})
    True
    """
    return all(environment.get(name) for name in NEEDED)


def own_threads(environment: Mapping[str, str] = os.environ) -> int:
    """Divide the cores of this host among its ranks."""
    cores = len(os.sched_getaffinity(0))
    share = max(cores // int(environment.get("LOCAL_WORLD_SIZE", 1)), 1)
    return min(share, int(environment.get("NUMBA_NUM_THREADS") or cores))  # kernels refuse to run on more than these


@contextmanager
def join(device: str = "cpu") -> Iterator[Job]:
    """Meet the other ranks of the job: by gloo on the CPU, by NCCL on GPUs, one for each rank of a host.

    Where a launcher such as Ray Train has made the process group already, it is used and stays.
    """
    import torch
    import torch.distributed as dist

    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    local_rank, local_ranks = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    threads = own_threads()
    torch.set_num_threads(threads)
    backend = "gloo"
    if device != "cpu":
        device, backend = f"cuda:{local_rank}", "cpu:gloo,cuda:nccl"
        torch.cuda.set_device(local_rank)
    _silence()
    made = dist.is_initialized()
    if made:
        store = dist.distributed_c10d._get_default_store()
    else:
        store = _meet(rank, ranks)
        dist.init_process_group(backend, store=store, rank=rank, world_size=ranks, timeout=PATIENCE)
    group = dist.new_group(backend="gloo") if device != "cpu" else dist.group.WORLD
    yield Job(rank, ranks, local_rank, local_ranks, device, threads, store, group)
    dist.barrier(group)  # where the block fails, the process ends, and others must not wait for it here
    if not made:
        key, end = "neural-brane/left", time.monotonic() + MEETING
        if rank:
            store.add(key, 1)
        while rank == 0 and store.add(key, 0) < ranks - 1 and time.monotonic() < end:
            time.sleep(0.01)  # rank 0, which has the store, leaves last
        dist.destroy_process_group()


def _meet(rank: int, ranks: int) -> Any:
    """The store by which the ranks of this start find each other."""
    from torch.distributed import DistNetworkError, TCPStore

    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return TCPStore(host, port, ranks, rank == 0, timeout=PATIENCE, multi_tenant=True)
    agents = TCPStore(host, port, is_master=False, timeout=PATIENCE)
    key = "neural-brane/store of rank 0"
    if rank == 0:
        with socket.create_connection((host, port), timeout=MEETING) as connection:
            own = connection.getsockname()[0]  # the address by which others reach this machine
        store = TCPStore(own, 0, ranks, True, timeout=PATIENCE, wait_for_workers=False)
        agents.set(key, f"{own} {store.port}")
        return store
    end = time.monotonic() + MEETING
    while True:  # until rank 0 has written its address, that of an earlier start may be there
        agents.wait([key])
        host, text = agents.get(key).decode().split()
        try:
            with socket.create_connection((host, int(text)), timeout=5):
                pass
            return TCPStore(host, int(text), ranks, False, timeout=PATIENCE, wait_for_workers=False)
        except (OSError, DistNetworkError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def advice(environment: Mapping[str, str] = os.environ) -> str | None:
    """Say how to start torchrun so that a job outlives a lost host; None where nothing is wrong."""
    return ADVICE if environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True" else None


def start(ranks: int, arguments: Sequence[str], *, restarts: int = RESTARTS) -> int:
    """Start `brane` with these arguments on so many ranks of this machine; returns the exit code when all have ended.

    Where a rank is killed, all are started again, at most `restarts` times.
    """
    if ranks < 1:
        raise ParameterError(f"--ranks {ranks} makes no sense; give 1 or more")
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    _silence()
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    os.environ.setdefault("OMP_NUM_THREADS", str(max(len(os.sched_getaffinity(0)) // ranks, 1)))
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=ranks,
        run_id=f"brane-{os.getpid()}",
        rdzv_backend="c10d",
        rdzv_endpoint="localhost:0",
        max_restarts=restarts,
        signals_to_handle=f"SIGTERM,SIGINT,SIGHUP,SIGQUIT,{FINAL.name}",
    )
    os.environ[AGENT] = str(os.getpid())
    try:
        elastic_launch(config, sys.executable)("-m", "neural_brane", *arguments)
    except ChildFailedError as error:
        rank, failure = min(error.failures.items(), key=lambda one: one[1].timestamp)
        code = failure.exitcode
        cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        raise RankError(
            f"rank {rank} was ended by {cause}, and all {ranks} ranks were started {restarts} times "
            "again; the same command goes on from the last checkpoint, if there is one"
        ) from None
    except SignalException as stop:
        return 2 if stop.sigval == FINAL else 128 + stop.sigval
    return 0


def _silence() -> None:
    """Keep PyTorch from logging: the job itself reports killed ranks when it resumes or ends."""
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("torch.distributed") and isinstance(logger, logging.Logger):
            logger.setLevel(logging.CRITICAL)


# A rank that fails makes the others fail in the middle of a step. Only the first error is printed, and the launcher
# starts nothing again. If a rank was killed, all end silently, and the launcher starts them again.

# Messages of gloo, NCCL and PyTorch's store where another rank is gone.
GONE = re.compile(r"gloo|NCCL|Connection (closed|reset|refused|was)|Broken pipe|Socket|failed to recv", re.IGNORECASE)
KEY, SAID = "neural-brane/error", "neural-brane/error was said"
REPORT_PATIENCE = timedelta(seconds=10)


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
        store.wait([SAID], REPORT_PATIENCE)


def forgo_restarts(environment: Mapping[str, str] = os.environ) -> None:
    """Tell the launcher of this rank that starting it again would not help."""
    if agent := environment.get(AGENT):
        os.kill(int(agent), FINAL)
    elif environment.get("TORCHELASTIC_RUN_ID"):  # the parent is torchrun
        os.kill(os.getppid(), signal.SIGTERM)
