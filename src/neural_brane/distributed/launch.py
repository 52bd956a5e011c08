"""Join the job that a launcher has started, or start one on this machine. If it fails, one rank prints why."""

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

# PyTorch, TorchRec and FBGEMM work only in matching versions. TorchRec requires FBGEMM's build for NVIDIA, so pip must
# ignore its requirements.

VERSIONS = {"torch": "2.13.", "tensordict": "", "pyre-extensions": "", "torchrec": "1.8."}  # begin of each version
FBGEMM = ("fbgemm-gpu-cpu", "fbgemm-gpu"), "1.8."  # either package works
INSTALL = (
    "pip install 'neural-brane[distributed]' && pip install --no-deps torchrec==1.8.0 fbgemm-gpu-cpu==1.8.0 "
    "(for NVIDIA GPUs, replace fbgemm-gpu-cpu by fbgemm-gpu)"
)


def require_packages(installed: Callable[[str], str] = version) -> None:
    """Raise DependencyError if a package is missing or has a wrong version, without importing any."""

    def check(name: str, begins: str) -> str | None:
        try:
            number = installed(name)
        except PackageNotFoundError:
            return f"{name} is not installed"
        return None if number.startswith(begins) else f"{name} is {number}, not {begins}x"

    wrong = [text for name, begins in VERSIONS.items() if (text := check(name, begins))]
    names, begins = FBGEMM
    builds = [check(name, begins) for name in names]
    if all(builds):
        wrong.append(next((text for text in builds if text and "not installed" not in text), str(builds[0])))
    if wrong:
        raise DependencyError(f"training needs packages of matching versions, but {'; '.join(wrong)}; run: {INSTALL}")


# If a job loses a rank, torchrun restarts it. PyTorch may then find the addresses of dead ranks in torchrun's store, so
# that gloo fails or waits forever. `start` makes a new store at each restart. If another launcher started the job, rank
# 0 opens its own store and publishes the address in the launcher's store.

NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # variables that every launcher sets
RESTARTS = 10  # restarts of all ranks before a job on this machine gives up
PATIENCE = timedelta(minutes=10)  # longest wait for another rank within a step
MEETING = 60.0  # seconds to find the store of rank 0
AGENT = "NEURAL_BRANE_AGENT"  # variable with the id of the process that `start` runs in
FINAL = signal.SIGUSR1  # signal to that process: do not restart the ranks
ADVICE = (
    "torchrun replaces a killed rank, but with these options the job ends if a host is lost; to prevent this, start "
    "torchrun with TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 in its environment and --rdzv-backend c10d"
)


@dataclass(frozen=True)
class Job:
    """The place of this process in a job."""

    rank: int
    ranks: int
    local_rank: int  # number among the ranks of this host
    local_ranks: int
    device: str  # "cpu", or the GPU of this rank
    threads: int  # CPU threads of this rank
    store: Any  # shared by all ranks until a restart
    group: Any  # process group of all ranks on the CPU

    def wait_for_all(self) -> None:
        """Wait until all ranks have called this method."""
        import torch.distributed as dist

        dist.barrier(self.group)


def count(ranks: int) -> str:
    """Return a number of ranks as text."""
    return "1 rank" if ranks == 1 else f"{ranks} ranks"


def is_launched(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether this process is a rank of a job that torchrun or another launcher has started.

    >>> is_launched({"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"})
    True
    """
    return all(environment.get(name) for name in NEEDED)


def own_threads(environment: Mapping[str, str] = os.environ) -> int:
    """Return the number of threads for a rank: the cores of this host divided by its ranks."""
    cores = len(os.sched_getaffinity(0))
    share = max(cores // int(environment.get("LOCAL_WORLD_SIZE", 1)), 1)
    return min(share, int(environment.get("NUMBA_NUM_THREADS") or cores))  # Numba allows no more


@contextmanager
def join(device: str = "cpu") -> Iterator[Job]:
    """Join the job's ranks by gloo on CPUs or NCCL on GPUs, or in the launcher's process group; yield the `Job`."""
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
    dist.barrier(group)  # not in a `finally`: if the block fails here, other ranks may never reach the barrier
    if not made:
        key, end = "neural-brane/left", time.monotonic() + MEETING
        if rank:
            store.add(key, 1)
        while rank == 0 and store.add(key, 0) < ranks - 1 and time.monotonic() < end:
            time.sleep(0.01)  # rank 0 owns the store, so it leaves last
        dist.destroy_process_group()


def _meet(rank: int, ranks: int) -> Any:
    """Return the store through which the ranks find each other after a start or restart."""
    from torch.distributed import DistNetworkError, TCPStore

    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return TCPStore(host, port, ranks, rank == 0, timeout=PATIENCE, multi_tenant=True)
    agents = TCPStore(host, port, is_master=False, timeout=PATIENCE)
    key = "neural-brane/store of rank 0"
    if rank == 0:
        with socket.create_connection((host, port), timeout=MEETING) as connection:
            own = connection.getsockname()[0]  # address of this machine for other hosts
        store = TCPStore(own, 0, ranks, True, timeout=PATIENCE, wait_for_workers=False)
        agents.set(key, f"{own} {store.port}")
        return store
    end = time.monotonic() + MEETING
    while True:  # until rank 0 has published its new address, the store may contain an old one
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
    """Return advice if torchrun was started so that a job does not survive the loss of a host, else None."""
    return ADVICE if environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True" else None


def start(ranks: int, arguments: Sequence[str], *, restarts: int = RESTARTS) -> int:
    """Run `brane` with these arguments as ranks on this machine, restarted if one is killed; return the exit code."""
    if ranks < 1:
        raise ParameterError(f"--ranks {ranks} makes no sense; give 1 or more")
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    _silence()
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    os.environ.setdefault("OMP_NUM_THREADS", str(max(len(os.sched_getaffinity(0)) // ranks, 1)))
    config = LaunchConfig(
        min_nodes=1, max_nodes=1, nproc_per_node=ranks, run_id=f"brane-{os.getpid()}", rdzv_backend="c10d",
        rdzv_endpoint="localhost:0", max_restarts=restarts,
        signals_to_handle=f"SIGTERM,SIGINT,SIGHUP,SIGQUIT,{FINAL.name}",
    )  # fmt: skip
    os.environ[AGENT] = str(os.getpid())
    try:
        elastic_launch(config, sys.executable)("-m", "neural_brane", *arguments)
    except ChildFailedError as error:
        rank, failure = min(error.failures.items(), key=lambda one: one[1].timestamp)
        code = failure.exitcode
        cause = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        found = f"rank {rank} ended with {cause} after {restarts} restarts of all {ranks} ranks"
        advice = "run the same command again to resume from the last checkpoint, if there is one"
        raise BraneError(f"{found}; {advice}") from None
    except SignalException as stop:
        return 2 if stop.sigval == FINAL else 128 + stop.sigval
    return 0


def _silence() -> None:
    """Silence PyTorch's log, because the job reports killed ranks itself."""
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("torch.distributed") and isinstance(logger, logging.Logger):
            logger.setLevel(logging.CRITICAL)


# If a rank fails, the other ranks fail in the middle of a step. Only the first error is printed, and the launcher does
# not restart the ranks. If a rank is killed, the others end silently, and the launcher restarts all ranks.

# Messages of gloo, NCCL and PyTorch's store if another rank has ended.
LOST = re.compile(r"gloo|NCCL|Connection (closed|reset|refused|was)|Broken pipe|Socket|failed to recv", re.IGNORECASE)
FIRST, PRINTED = "neural-brane/error", "neural-brane/error printed"  # keys in the store of the ranks
REPORT_PATIENCE = timedelta(seconds=10)


def is_consequence(error: BaseException) -> bool:
    """Return whether an error only means that another rank has ended.

    >>> is_consequence(RuntimeError("[gloo/transport/tcp/pair.cc:544] Connection closed by peer [127.0.0.1]:1"))
    True
    >>> is_consequence(RuntimeError("shape mismatch"))
    False
    """
    return isinstance(error, RuntimeError) and LOST.search(str(error)) is not None


def is_first(store: Any, rank: int) -> bool:
    """Return whether this rank is the first with an error, which it must then print."""
    with suppress(RuntimeError):  # rank 0 owns the store; if both are gone, rank 0 has printed its error
        return bool(store.compare_set(FIRST, "", str(rank)) == str(rank).encode())
    return False


def mark_printed(store: Any) -> None:
    """Let the other ranks know that the first error is printed, so that they may end."""
    with suppress(RuntimeError):
        store.set(PRINTED, "1")


def wait_until_printed(store: Any) -> None:
    """Wait until the first error is printed, because a launcher that ends the job kills all ranks at once."""
    with suppress(RuntimeError):
        store.wait([PRINTED], REPORT_PATIENCE)


def forgo_restarts(environment: Mapping[str, str] = os.environ) -> None:
    """Signal the launcher of this rank not to restart the job."""
    if agent := environment.get(AGENT):
        os.kill(int(agent), FINAL)
    elif environment.get("TORCHELASTIC_RUN_ID"):  # the parent process is torchrun
        os.kill(os.getppid(), signal.SIGTERM)
