"""Jobs that tests start with torchrun, observe through their metrics and checkpoints, and kill."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from neural_brane.distributed.embedding import read_lines

PATIENCE = 300.0  # seconds until a job counts as hanging
# A host counts as lost sooner than by default: 15 seconds, and 30 for others to join, would be most of the test.
QUICK = "last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=4"


class Running:
    """A job with output, checkpoints and metrics in one folder; it is killed at the end of the `with` block."""

    def __init__(self, folder: Path, graph: Path, words: list[str]):
        self.folder, self.kept, self.metrics = folder, folder / "kept", folder / "metrics.jsonl"
        options = ["-o", str(folder / "vectors"), "--checkpoint", str(self.kept), "--metrics", str(self.metrics)]
        self.words = ["-m", "neural_brane", "distributed", "embed", str(graph), *options, *words]
        self.agents: list[subprocess.Popen] = []

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for agent in self.agents:
            kill_host(agent)

    def start(self, *options: str) -> subprocess.Popen:
        """Start an agent of torchrun with these options."""
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(sys.path),
            "OMP_NUM_THREADS": "1",
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        }
        command = [sys.executable, "-m", "torch.distributed.run", *options, *self.words]
        with (self.folder / "log").open("a") as log:
            agent = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
        self.agents.append(agent)
        return agent

    def log(self) -> str:
        """Return everything that was printed so far."""
        return (self.folder / "log").read_text()

    def resumed(self) -> list[dict]:
        """Return the lines of metrics that report a resumed run."""
        return [line for line in read_lines(self.metrics) if line.get("event") == "resumed"]

    def saved(self) -> int:
        """Return the step of the newest checkpoint."""
        try:
            return int((self.kept / "LATEST").read_text().removeprefix("step-"))
        except FileNotFoundError:
            return 0

    def wait_for_progress(self, times: int, ranks: int) -> None:
        """Wait until the job was resumed so many times, last on so many ranks, and has saved a later step since."""

        def seen() -> bool:
            resumed = self.resumed()
            on_those = not resumed or resumed[-1]["ranks"] == ranks
            return len(resumed) >= times and on_those and self.saved() > (resumed[-1]["step"] if resumed else 0)

        self.wait(seen)

    def wait(self, seen) -> None:
        """Wait until `seen` returns true; fail if the job has ended or takes too long."""
        end = time.monotonic() + PATIENCE
        while not seen():
            assert time.monotonic() < end, self.log()[-4000:]
            assert any(agent.poll() is None for agent in self.agents), self.log()[-4000:]
            time.sleep(0.05)

    def finish(self) -> float:
        """Wait until the job has ended without errors; return the mean loss of its last epoch."""
        for agent in self.agents:
            if agent.poll() != -signal.SIGKILL:
                assert agent.wait(PATIENCE) == 0, self.log()[-4000:]
        newest = self.kept / (self.kept / "LATEST").read_text() / "checkpoint.json"
        loss: float = json.loads(newest.read_text())["numbers"]["losses"][-1]
        return loss


def workers(agent: subprocess.Popen) -> dict[int, int]:
    """Return the processes that an agent has started, by their rank."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(status.read_text().rpartition(")")[2].split()[1])
            words = (status.parent / "environ").read_bytes().split(b"\0") if parent == agent.pid else []
        except (OSError, IndexError):  # it has ended meanwhile
            continue
        ranks = [int(word.removeprefix(b"RANK=")) for word in words if word.startswith(b"RANK=")]
        found |= dict.fromkeys(ranks, int(status.parent.name))
    return found


def has_pending_sigterm(pid: int) -> bool:
    """Return whether a stopped process has been sent SIGTERM, which ends it when it continues."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return True
    pending = next(int(line.split()[1], 16) for line in lines if line.startswith("ShdPnd"))
    return bool(pending >> (signal.SIGTERM - 1) & 1)


def kill_host(agent: subprocess.Popen) -> None:
    """Kill an agent and its workers at once, as if the host had lost power."""
    pids = list(workers(agent).values())
    agent.kill()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    agent.wait()
