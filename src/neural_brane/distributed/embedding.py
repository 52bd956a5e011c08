"""Embed a graph with many ranks: each rank trains both parts of its nodes' vectors, in step with the other ranks."""

import hashlib
import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import distributed

from neural_brane import __version__
from neural_brane.distributed import batches as batching
from neural_brane.distributed.batches import AnyShards, BatchMaker, GraphRows, Prefetch, bags_of_nodes, sampling_tables
from neural_brane.distributed.checkpoints import EVERY, Checkpoints
from neural_brane.distributed.exchange import Exchange, block_size, node_range
from neural_brane.distributed.launch import Job, count, is_launched, join, own_threads, require_packages
from neural_brane.distributed.model import CPUStep, ShardedModel
from neural_brane.distributed.spectral import OwnGraph, join_own, spectral_part
from neural_brane.errors import ParameterError
from neural_brane.files.checkpoints import identify
from neural_brane.files.graphs.shards import MemoryShards, Shards, open_shards
from neural_brane.files.storage import require_folder
from neural_brane.files.vectors.parts import PartWriter, finish
from neural_brane.graph import AttributedGraph
from neural_brane.kernels import cpu
from neural_brane.kernels.model import Model, Settings, bags_of
from neural_brane.linalg.eigenvectors import REPORTS
from neural_brane.methods.identity import identify_code
from neural_brane.methods.neural_brane import NeuralBrane
from neural_brane.methods.neural_brane.model import Facts
from neural_brane.methods.neural_brane.parts import LearnedPart, kernel_settings
from neural_brane.methods.neural_brane.training import Epochs, start_numbers
from neural_brane.methods.spectral import Decomposition
from neural_brane.methods.training import require_finite
from neural_brane.progress import Meter, Reporter

# Rank 0 writes the metrics of all ranks. Each line of the file is a JSON object::
#
#     {"step": 40, "triplets": 160000, "loss": 0.41, "triplets_per_second": 81000.0, "ranks": 2, "restarts": 1,
#      "seconds": {"sample": 0.1, "lookup": 0.2}}
#
# Loss and seconds (per phase of a step) are means over the steps since the previous line. A resumed run adds a line
# {"event": "resumed", …}. If a step appears twice, use the later line.

INTERVAL = 1.0  # seconds between two lines
FILES = (".jsonl", ".json")


class Sizes(NamedTuple):
    """The sizes of a training that runs to its last epoch."""

    batch: int  # triplets per step of all ranks together
    steps: int
    epochs: int
    nodes: int
    ranks: int


class Metrics:
    """Count steps, losses and seconds per phase; rank 0 reports them, and writes them to `target` if it is given."""

    def __init__(
        self,
        target: str | Path | None,
        sizes: Sizes,
        *,
        rank: int,
        report: Reporter | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ):
        reports = rank == 0
        self.batch, self.steps, epochs, nodes, self.ranks = sizes
        self.restarts, self._clock = 0, clock
        total = self.steps * self.batch
        self._meter = Meter(report if reports else None, total, "triplets", epochs=epochs, nodes=nodes)
        self._target = None if target is None or not reports else Path(target)
        self._file = None if self._target is None else _open(self._target)
        self._board: Any = None
        self._seconds: dict[str, float] = {}
        self._step = self._written = 0  # steps done, and steps covered by the lines written so far
        self._sum, self._written_at = 0.0, clock()

    def begin(self, step: int = 0, *, was: int | None = None) -> str | None:
        """Begin at a step. If a run of `was` ranks is resumed, return a message that says so."""
        self._step = self._written = step
        self._meter.resume(step * self.batch)
        self._written_at = self._clock()
        if self._target is not None:
            earlier = sum(line.get("event") == "resumed" for line in read_lines(self._target))
            self.restarts = 0 if was is None else earlier + 1
            if self._target.suffix not in FILES:
                with suppress(ImportError):  # TensorBoard is optional
                    from torch.utils.tensorboard import SummaryWriter

                    self._board = SummaryWriter(str(self._target), purge_step=step + 1)
        if was is None:
            return None
        self._write({"event": "resumed", "step": step, "ranks": self.ranks, "was": was, "restarts": self.restarts})
        return f"resumed at step {step:,} on {count(self.ranks)}" + (f" (was {was})" if was != self.ranks else "")

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time that the block takes to a phase."""
        begun = self._clock()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + self._clock() - begun

    def advance(self, step: int, *, epoch: int, loss: float, mean: float) -> None:
        """Count a step; step: the number of steps done. loss: the loss of the batch. mean: the mean of the epoch."""
        self._meter.advance(self.batch * (step - self._step), epoch=epoch, loss=mean)
        self._sum += loss
        self._step = step
        now = self._clock()
        if self._file is not None and (step == self.steps or now - self._written_at >= INTERVAL):
            self._write_means(now)

    def close(self) -> None:
        """Write the metrics of the last steps and close the files."""
        if self._file is not None:
            if self._step > self._written:
                self._write_means(self._clock())
            self._file.close()
        if self._board is not None:
            self._board.close()
        self._file = self._board = None

    def _write_means(self, now: float) -> None:
        steps = self._step - self._written
        line = {
            "step": self._step, "triplets": self._step * self.batch, "loss": self._sum / steps,
            "triplets_per_second": round(steps * self.batch / max(now - self._written_at, 1e-9), 1),
            "ranks": self.ranks, "restarts": self.restarts,
            "seconds": {name: round(value / steps, 6) for name, value in self._seconds.items()},
        }  # fmt: skip
        self._write(line)
        if self._board is not None:
            for name in ("loss", "triplets_per_second", "ranks", "restarts"):
                self._board.add_scalar(name, line[name], self._step)
            for name, value in self._seconds.items():
                self._board.add_scalar(f"seconds/{name}", value / steps, self._step)
        self._seconds.clear()
        self._sum, self._written, self._written_at = 0.0, self._step, now

    def _write(self, line: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.write(json.dumps(line).encode() + b"\n")
            self._file.flush()


def metrics_file(target: str | Path) -> Path:
    """Return the path of the file of JSON lines: `target`, or metrics.jsonl in the folder `target`."""
    path = Path(target)
    return path if path.suffix in FILES else path / "metrics.jsonl"


def read_lines(target: str | Path) -> list[dict[str, Any]]:
    """Return the complete lines of a metrics file; a killed job may have cut off its last line."""
    path, lines = metrics_file(target), []
    for text in path.read_text().splitlines() if path.is_file() else ():
        try:
            lines.append(json.loads(text))
        except ValueError:
            continue
    return lines


def _open(target: Path) -> Any:
    """Open the file of JSON lines for appending. It is not written atomically, because it is read during training."""
    path = metrics_file(target)
    try:
        require_folder(target, ParameterError)
        path.parent.mkdir(exist_ok=True)
        file = path.open("a+b")
    except OSError as error:
        raise ParameterError(f"--metrics {target}: cannot be written ({error.strerror}); choose another file") from None
    end = file.seek(0, 2)
    file.seek(max(end - 1, 0))
    if file.read() not in (b"", b"\n"):  # a killed job left an incomplete line
        file.write(b"\n")
    return file


class Watchers(NamedTuple):
    """Objects that follow a training: a file or folder for metrics, checkpoints, a function that prints a line."""

    metrics: str | Path | None = None
    checkpoints: Checkpoints | None = None
    print_line: Callable[[str], None] = lambda line: None


class RankTraining(Epochs):
    """Training by all ranks, in the same epochs and batches as in one process; all ranks call its methods together."""

    def __init__(self, settings: dict[str, Any], model: ShardedModel, metrics: Metrics, watchers: Watchers):
        super().__init__(settings, start_numbers())
        self.model, self.metrics, self.watchers = model, metrics, watchers
        self.total = settings["epochs"] * settings["batches_per_epoch"]

    def begin(self, seed: int) -> int:
        """Initialise the model or load it from a checkpoint; return the number of the next step."""
        checkpoints, metrics = self.watchers.checkpoints, self.metrics
        kept = checkpoints.find() if checkpoints else None
        if kept is None or checkpoints is None:
            self.model.start(self.settings, seed)
            metrics.begin()
            return 0
        checkpoints.read(self.model.tensors())
        self.numbers.update(kept.numbers)
        self.losses, self.model.scale = self.numbers["losses"], self.numbers["scale"]
        self.require_no_earlier_end()
        if line := metrics.begin(kept.step, was=kept.ranks):
            self.watchers.print_line(line)
        return kept.step

    def run(
        self, first: int, batches: Callable[[int], Any], step: Callable[[Any], torch.Tensor], together: int
    ) -> None:
        """Train from step `first` until the end or a flat loss; losses are read once in `together` steps."""
        at, per_epoch = first, self.settings["batches_per_epoch"]
        losses: list[torch.Tensor] = []
        while at < self.total and not (at % per_epoch == 0 and self.is_flat()):
            with self.metrics.phase("sample"):
                batch = batches(at)
            losses.append(step(batch))
            at += 1
            due = self.watchers.checkpoints is not None and self.watchers.checkpoints.due(at)
            if due or len(losses) == together or at % per_epoch == 0:
                self._count(at, losses)
                losses.clear()
            if self.watchers.checkpoints is not None and due:
                with self.metrics.phase("checkpoint"):
                    numbers = self.numbers | {"scale": self.model.scale}
                    self.watchers.checkpoints.save(at, self.model.tensors(), numbers)
        self.model.fold()
        own = {table.name: table.local for table in self.model.tables}
        own |= {"weight": self.model.weight, "bias": self.model.bias}
        arrays = {name: tensor.cpu().numpy() for name, tensor in own.items()}
        require_finite(arrays, f"epoch {len(self.losses)}", **self.remedies())

    def _count(self, at: int, losses: list[torch.Tensor]) -> None:
        """Count the losses of the last steps before step `at`."""
        known = torch.stack(losses).double().cpu().numpy()
        per_epoch = self.settings["batches_per_epoch"]
        for number, loss in enumerate(known):
            step = at - len(known) + number
            mean = self.count(step % per_epoch + 1, np.array([loss]))
            self.metrics.advance(step + 1, epoch=step // per_epoch + 1, loss=float(loss), mean=mean)


BLOCK_NODES = 1 << 20  # nodes whose degrees are read at a time
VECTOR_NODES = 8_192  # nodes embedded at a time


class ShardFacts(Facts):
    """The facts of a graph in shards that decide parameters; all ranks read them together."""

    def __init__(self, shards: AnyShards, exchange: Exchange):
        self._shards, self._exchange, self.nodes = shards, exchange, shards.nodes

    @cached_property
    def distinguishes_nodes(self) -> bool:
        """True if some attribute distinguishes nodes."""
        return OwnGraph(self._shards, self._exchange).distinguishes_nodes

    @cached_property
    def can_rank(self) -> bool:
        """True if a node has both a neighbour and a linked node that is not its neighbour."""
        rows = GraphRows(self._shards, self._exchange)
        linked, least = 0, self.nodes  # linked nodes, and the fewest that one of them excludes: itself and neighbours
        for first in range(rows.own.start, rows.own.stop, BLOCK_NODES):
            degree, loops = rows.degrees(first, min(first + BLOCK_NODES, rows.own.stop))
            known = degree > 0
            linked += int(np.count_nonzero(known))
            least = min(least, int((degree + ~loops)[known].min(initial=least)))
        total = self._exchange.total(np.array([linked], np.int64))[0]
        return bool(-self._exchange.largest(np.array([-least]))[0] < total)


class Ranks(NamedTuple):
    """Exchanges between ranks through the memory of their hosts and of their devices."""

    host: Exchange
    device: Exchange
    by_range: bool = False  # True if a rank reads only the shards of its own nodes


class TrainedModel(NamedTuple):
    """A model that all ranks have trained, with everything needed to compute vectors."""

    model: ShardedModel
    rows: GraphRows
    kernel: Settings
    losses: list[float]

    def vectors(self, output: str) -> Iterator[np.ndarray]:
        """Yield the vectors of this rank's nodes in blocks, equally many on all ranks; the last may be empty."""
        model, own = self.model, self.model.neighbours.own
        weight, bias = model.weight.cpu().numpy(), model.bias.cpu().numpy()
        for first in range(0, block_size(self.rows.nodes, model.exchange.ranks), VECTOR_NODES):
            nodes = np.arange(min(own.start + first, own.stop), min(own.start + first + VECTOR_NODES, own.stop))
            batch = bags_of_nodes(self.rows, nodes)
            with torch.no_grad():
                pairs = zip(model.tables, batch.ids, strict=True)
                rows = [table.lookup(torch.from_numpy(ids).to(model.device)).cpu().numpy() for table, ids in pairs]
            small = Model(np.ascontiguousarray(rows[0]), np.ascontiguousarray(rows[1]), weight, bias)
            pooled = cpu.embed(small, *batch.bags, np.arange(len(nodes), dtype=np.int32), self.kernel)
            if output == "hidden":
                yield cpu.hide(Model(pooled, pooled, weight, bias), pooled)
            elif output == "released":
                d1 = self.kernel.attribute_dim
                own_rows = model.neighbours.local[first : first + len(nodes), : weight.shape[1] - d1]
                yield np.hstack([own_rows.cpu().numpy(), np.maximum(pooled[:, :d1], 0)])
            else:
                yield pooled


def own_spectral(shards: AnyShards, ranks: Ranks, settings: dict[str, Any], seed: int) -> Decomposition:
    """Compute the spectral part of the nodes that this rank owns."""
    if not settings["spectral_dim"]:
        return Decomposition.empty(len(node_range(shards.nodes, ranks.host.rank, ranks.host.ranks)))
    progress = settings["progress"] if ranks.host.rank == 0 else None
    meter = Meter(progress, REPORTS, "steps", stage="spectral part")
    return spectral_part(shards, ranks.host, settings, seed, report=meter.advance)


def train(
    shards: AnyShards, ranks: Ranks, settings: dict[str, Any], seed: int, watchers: Watchers | None = None
) -> TrainedModel:
    """Train the learned part, from the beginning or from a checkpoint."""
    own, watchers = settings | {"dim": settings["dim"] - settings["spectral_dim"]}, watchers or Watchers()
    batch, kernel, host = own["batch_size"], kernel_settings(own), ranks.host
    if batch < host.ranks:
        raise ParameterError(f"batch_size={batch} is smaller than the number of ranks, {host.ranks}; give a larger one")
    # A thread prepares the next batch during a step, so its requests for rows need a separate process group.
    rows = GraphRows(shards, Exchange(distributed.new_group(backend="gloo")) if ranks.by_range else None)
    options = {name: own[name] for name in ("negative_power", "allow_self_negative")}
    model = ShardedModel(shards.attributes, shards.nodes, own, ranks.device)
    sizes = Sizes(batch, own["epochs"] * own["batches_per_epoch"], own["epochs"], shards.nodes, host.ranks)
    counter = Metrics(watchers.metrics, sizes, rank=host.rank, report=own["progress"])
    training = RankTraining(own, model, counter, watchers)
    with ExitStack() as stack:
        stack.callback(counter.close)
        first = training.begin(seed)
        if model.device.type == "cuda":
            from neural_brane.distributed.gpu import prepare_gpu

            training.run(first, *prepare_gpu(shards, model, kernel, own, seed, counter.phase))
        else:
            tables = sampling_tables(rows, host, **options)
            share, allow = batching.share_of(batch, host.rank, host.ranks), own["allow_self_negative"]
            make = BatchMaker(rows, tables, share, batch, allow_self_negative=allow, seed=seed)
            step = CPUStep(model, kernel, batch, len(share), counter.phase)
            training.run(first, stack.enter_context(Prefetch(make, training.total)), step, step.together)
    if host.rank == 0:
        training.warn_if_untrained()
    return TrainedModel(model, rows, kernel, training.losses)


FREE = ("epochs", "tolerance", "threads", "device")  # parameters that may change when a checkpoint is resumed
WRITTEN_ROWS = 8_192  # vectors written at a time


def embed_shards(
    folder: str | Path,
    output: str | Path,
    *,
    job: Job,
    checkpoint: str | Path | None = None,
    checkpoint_every: int | None = None,
    metrics: str | Path | None = None,
    parts_format: str = "npy",
    by_range: bool = False,
    progress: Reporter | None = None,
    print_line: Callable[[str], None] = lambda line: None,
    **parameters: Any,
) -> None:
    """Embed a graph in a folder of shards, as `brane shard` writes it. All ranks of a job call this together.

    output: a folder in which each rank writes the vectors of its nodes as one file. job: from `launch.join`.
    checkpoint: a folder that all hosts see; training resumes from a checkpoint of the same run, on any number of ranks.
    metrics: a .jsonl file or a folder. parts_format: "npy" or "parquet". by_range: each rank reads only the shards of
    its own nodes, for graphs larger than a host's memory. print_line: called with a line of text when a run is resumed.
    parameters: for `NeuralBrane`; a missing `seed` is drawn at random, or 0 if there is a checkpoint.
    """
    shards, host = open_shards(folder), Exchange(job.group)
    device = host
    if job.device != "cpu":
        if by_range:
            raise ParameterError("--by-range does not work with GPUs, which keep the whole graph; leave it out")
        device = Exchange()
        device.device = torch.device(job.device)  # set here, because a group with gloo and NCCL counts as a CPU group
    settings = NeuralBrane(**parameters).settings_by(ShardFacts(shards, host))
    seed = settings["seed"] if settings["seed"] is not None else 0 if checkpoint is not None else secrets.randbits(62)
    seed = int(host.from_first(np.array([seed], np.int64))[0])
    settings |= {"progress": progress, "threads": settings["threads"] or job.threads}
    kept = None
    if checkpoint is not None:
        identity = _identify(shards, settings, seed)
        kept = Checkpoints(checkpoint, identity, every=checkpoint_every or EVERY, free=FREE, group=job.group)
    ranks = Ranks(host, device, by_range)
    with cpu.threads(settings["threads"]):
        spectral, trained = own_spectral(shards, ranks, settings, seed), None
        if settings["spectral_dim"] < settings["dim"]:
            trained = train(shards, ranks, settings, seed, Watchers(metrics, kept, print_line))
        learned = trained.vectors(settings["output"]) if trained else iter(())
        joint = join_own(spectral, learned, settings, host)
    _write(Path(output), shards, host, joint.vectors, parts_format)
    host.wait()  # until all ranks have written their vectors
    if host.rank == 0:
        losses = trained.losses if trained else []
        finish(output, parts=host.ranks, provenance=_provenance(shards, settings, seed, losses))
    host.wait()


def _facts(shards: Shards) -> dict[str, Any]:
    return {name: getattr(shards.manifest, name) for name in ("name", "nodes", "edges", "attributes")}


def _identify(shards: Shards, settings: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return the identity of a run: settings, seed and checksums of the graph's files, but not the number of ranks."""
    deciding = {name: value for name, value in settings.items() if name not in ("seed", "progress", "checkpoint")}
    digest = hashlib.sha256(json.dumps(shards.manifest.files, sort_keys=True).encode()).hexdigest()[:16]
    code = identify_code(NeuralBrane, deciding, on_cpu=False)
    return identify("neural-brane", deciding, seed, _facts(shards) | {"digest": digest}, code)


def _write(output: Path, shards: Shards, host: Exchange, vectors: np.ndarray, kind: Any) -> None:
    """Write the vectors of this rank's nodes to its file."""
    own, width = node_range(shards.nodes, host.rank, host.ranks), vectors.shape[1]
    with PartWriter(output, host.rank, first=own.start, rows=len(own), dim=width, kind=kind) as part:
        for number in range(len(shards)):
            low, high = max(int(shards.bounds[number]), own.start), min(int(shards.bounds[number + 1]), own.stop)
            if low >= high:
                continue
            ids = shards.ids(number)[low - int(shards.bounds[number]) :]
            for first in range(low, high, WRITTEN_ROWS):
                last = min(first + WRITTEN_ROWS, high)
                part.write(ids[first - low : last - low], vectors[first - own.start : last - own.start])


def _provenance(shards: Shards, settings: dict[str, Any], seed: int, losses: list[float]) -> dict[str, Any]:
    """Return the facts needed to make the vectors again."""
    parameters = NeuralBrane(**settings).deciding_parameters() | {"seed": seed}
    made = {"method": NeuralBrane.title, "parameters": parameters, "data": _facts(shards), "version": __version__}
    if not losses:
        return made
    triplets = len(losses) * settings["batches_per_epoch"] * settings["batch_size"]
    return made | {"training": {"triplets": triplets, "loss": losses[-1]}}


def learn_graph(
    graph: AttributedGraph, settings: dict[str, Any], seed: int
) -> tuple[Decomposition, LearnedPart | None]:
    """Learn both parts of all vectors, on all ranks together; the learned part is None if all columns are spectral."""
    require_packages()
    settings = settings | {"threads": settings["threads"] or own_threads()}
    with ExitStack() as stack:
        if distributed.is_initialized():
            host = Exchange()
        elif is_launched():
            host = Exchange(stack.enter_context(join()).group)
        else:
            raise ParameterError(
                "device='distributed' needs several ranks, but this process is not one; start the program with "
                "'torchrun --nproc-per-node 2 PROGRAM', or train with 'brane distributed embed SOURCE --ranks 2'"
            )
        if host.device.type != "cpu":
            raise ParameterError("the process group uses NCCL, but device='distributed' trains on CPUs; use gloo")
        stack.enter_context(cpu.threads(settings["threads"]))
        seed = int(host.from_first(np.array([seed], np.int64))[0])  # a random seed differs between ranks
        shards, ranks = MemoryShards(graph), Ranks(host, host)
        own = own_spectral(shards, ranks, settings, seed)
        spectral = Decomposition(host.gather(own.vectors), own.values)
        if settings["spectral_dim"] == settings["dim"]:
            return spectral, None
        trained = train(shards, ranks, settings, seed)
        bags = bags_of(graph.attributes), bags_of(graph.adjacency)
        return spectral, LearnedPart(trained.model.whole(), bags, trained.kernel, trained.losses)
