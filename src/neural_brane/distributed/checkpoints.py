"""Save the state of a training on many ranks in folders `step-N`, from which any number of ranks can resume."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch.distributed import checkpoint as dcp
from torch.distributed._shard.sharded_tensor import Shard, ShardedTensor
from torch.distributed._shard.sharded_tensor.metadata import ShardMetadata
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta

from neural_brane.errors import CheckpointError
from neural_brane.files.checkpoints import START_AGAIN, require_same
from neural_brane.files.storage import Manifest, atomic, describe_files

# PyTorch would pickle the layout of its files, and loading a pickle can run any code. So the layout is saved as JSON,
# and PyTorch's loader for tensors only reads the other files.

KEEP = 2  # checkpoints to keep
EVERY = 100  # steps between two checkpoints
LATEST = "LATEST"
BLOCK_BYTES = 128 << 20  # bytes of a table per block; PyTorch copies each block that it writes or reads
Layout = dict[str, Any]  # `tensors`: dtype, size and chunks by name; `stored`: the place of each block


class Writer(dcp.FileSystemWriter):
    """Write tensors to a folder, one file per rank; afterwards rank 0 has their `layout`."""

    layout: Layout

    def __init__(self, folder: Any):
        super().__init__(folder, single_file_per_rank=True, sync_files=True, thread_count=1)

    def finish(self, metadata: Metadata, results: list[Any]) -> None:
        """Keep the layout, which PyTorch would pickle."""
        blocks = [(block.index, block.storage_data) for results_of_rank in results for block in results_of_rank]
        stored = [
            [index.fqn, None if index.offset is None else list(index.offset), at.relative_path, at.offset, at.length]
            for index, at in blocks
        ]
        tensors = {
            name: {
                "dtype": str(tensor.properties.dtype).removeprefix("torch."),
                "size": list(tensor.size),
                "chunks": [[list(chunk.offsets), list(chunk.sizes)] for chunk in tensor.chunks],
            }
            for name, tensor in metadata.state_dict_metadata.items()
            if isinstance(tensor, dcp.metadata.TensorStorageMetadata)
        }
        self.layout = {"tensors": tensors, "stored": stored}


class Reader(dcp.FileSystemReader):
    """Read the tensors of a folder by the layout of a `Writer`."""

    def __init__(self, folder: Any, layout: Layout):
        super().__init__(folder)
        self._layout = layout

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Return the layout as the metadata that PyTorch would have pickled."""
        stored = {
            MetadataIndex(name, offset): _StorageInfo(path, start, length)
            for name, offset, path, start, length in self._layout["stored"]
        }
        tensors: dict[str, Any] = {}
        for name, about in self._layout["tensors"].items():
            chunks = [ChunkStorageMetadata(torch.Size(first), torch.Size(size)) for first, size in about["chunks"]]
            kind = dcp.metadata.TensorProperties(dtype=getattr(torch, about["dtype"]))
            tensors[name] = dcp.metadata.TensorStorageMetadata(kind, torch.Size(about["size"]), chunks)
        return Metadata(tensors, storage_data=stored, storage_meta=StorageMeta(load_id=self.load_id))


@contextmanager
def sharded() -> Iterator[None]:
    """Suppress PyTorch's warning about sharded tensors, which TorchRec's tables still are."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Please use DTensor", FutureWarning)
        yield


def in_blocks(tensors: Mapping[str, Any], group: Any = None) -> dict[str, Any]:
    """Return the same tensors, with sharded ones cut into blocks of rows that share their memory. All ranks call it."""
    made: dict[str, Any] = dict(tensors)
    for name, tensor in tensors.items():
        if not isinstance(tensor, ShardedTensor):
            continue
        rows, width = tensor.size()
        blocks = []
        for shard in tensor.local_shards():
            first, local = shard.metadata.shard_offsets[0], shard.tensor
            step = max(BLOCK_BYTES // max(width * local.element_size(), 1), 1)
            for start in range(0, len(local), step):
                block = local.detach()[start : start + step]
                placed = f"rank:{dist.get_rank()}/{block.device}"
                blocks.append(Shard(block, ShardMetadata([first + start, 0], list(block.shape), placed)))
        made[name] = ShardedTensor._init_from_local_shards(blocks, rows, width, process_group=group)
    return made


@dataclass(frozen=True)
class CheckpointManifest(Manifest):
    """The contents of `checkpoint.json`: the run, the next step, the number of ranks, and plain numbers."""

    FORMAT: ClassVar = "neural-brane distributed checkpoint"
    VERSION: ClassVar = 1
    ERROR: ClassVar = CheckpointError
    FILE: ClassVar = "checkpoint.json"
    REPAIR: ClassVar = "it cannot be used"

    run: dict[str, Any]
    step: int
    ranks: int
    numbers: dict[str, Any]
    layout: Layout


class Checkpoints:
    """The checkpoints of a run in a folder; all ranks call the methods together.

    identity: from `files.checkpoints.identify`; other runs are refused, but parameters in `free` may differ.
    every: steps between two checkpoints. keep: checkpoints to keep. group: for messages on the CPU, or None.
    """

    def __init__(
        self,
        folder: str | Path,
        identity: Mapping[str, Any],
        *,
        every: int = EVERY,
        keep: int = KEEP,
        free: tuple[str, ...] = (),
        group: Any = None,
    ):
        self.folder, self.identity, self.every, self.keep, self.group = Path(folder), identity, every, keep, group
        self.rank, self.ranks = dist.get_rank(group), dist.get_world_size(group)
        self._free = free
        self._found: tuple[Path, CheckpointManifest] | None = None
        self._latest: str | None = None  # content of `LATEST` when this run last read or wrote it

    def due(self, step: int) -> bool:
        """Return whether to save a checkpoint after so many steps."""
        return step > 0 and step % self.every == 0

    def find(self) -> CheckpointManifest | None:
        """Return the manifest of the newest undamaged checkpoint, which `read` then reads, or None."""
        damage: list[str] = []
        self._latest = self._on_first(self._read_latest)
        for name in self._on_first(self._list):
            manifest = self._check(self.folder / name)
            if isinstance(manifest, str):
                damage.append(manifest)
                continue
            require_same(self.folder / name, manifest.run, self.identity, self._free)
            if damage and self.rank == 0:
                warnings.warn(f"{'; '.join(damage)}; resuming from the checkpoint before it, {name}", stacklevel=2)
            self._found = self.folder / name, manifest
            return manifest
        if damage:
            raise CheckpointError(f"{'; '.join(damage)}; all checkpoints in {self.folder} are damaged; {START_AGAIN}")
        return None

    def read(self, tensors: Mapping[str, Any]) -> None:
        """Fill tensors from the checkpoint that `find` returned, by name; they may be sharded in another way."""
        assert self._found is not None  # noqa: S101  `find` comes first
        path, manifest = self._found
        reader = Reader(path, manifest.layout)
        try:
            with sharded():
                for name, tensor in tensors.items():
                    stored = manifest.layout["tensors"].get(name)
                    if stored is None or stored["size"] != list(tensor.size()):
                        size = "missing" if stored is None else stored["size"]
                        raise CheckpointError(f"{path}: '{name}' is {size}, not {list(tensor.size())}; {START_AGAIN}")
                dcp.load(in_blocks(tensors, self.group), storage_reader=reader, process_group=self.group)
        except CheckpointException as error:
            raise CheckpointError(f"{path}: cannot be read ({_first(error)}); {START_AGAIN}") from None

    def save(self, step: int, tensors: Mapping[str, Any], numbers: Mapping[str, Any]) -> None:
        """Save the state before `step`: tensors, and numbers for JSON; warn and continue if it cannot be written."""
        path = self.folder / f"step-{step:08d}"
        self._on_first(lambda: self._make_room(path))
        writer = Writer(path)
        try:
            with sharded():
                dcp.save(in_blocks(tensors, self.group), storage_writer=writer, process_group=self.group)
        except CheckpointException as error:
            if self.rank == 0:
                warnings.warn(f"{path}: checkpoint not written ({_first(error)}); training goes on", stacklevel=2)
            return
        files: dict[str, Any] = {}
        for own in self._gather(describe_files(path, [file.name for file in path.glob(f"__{self.rank}_*")])):
            files |= own

        def finish() -> None:
            """Write the manifest and `LATEST`, and remove older checkpoints."""
            run = dict(self.identity)
            CheckpointManifest(files, run, step, self.ranks, dict(numbers), writer.layout).write(path)
            with atomic(self.folder / LATEST) as draft:
                draft.write_text(path.name)
            self._latest = path.name
            for name in self._list()[self.keep :]:
                shutil.rmtree(self.folder / name, ignore_errors=True)

        self._on_first(finish)

    def _make_room(self, path: Path) -> None:
        """Make an empty folder for a checkpoint; refuse if another run has written to the parent folder meanwhile."""
        if self._read_latest() != self._latest:
            raise CheckpointError(f"{self.folder}: another run saves its checkpoints here too; give another folder")
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)

    def _list(self) -> list[str]:
        """Return the folders of checkpoints, newest first, beginning with the one that `LATEST` names."""
        names = sorted((path.name for path in self.folder.glob("step-*") if path.is_dir()), reverse=True)
        latest = self._read_latest()
        return names if latest not in names else names[names.index(latest) :]

    def _read_latest(self) -> str | None:
        path = self.folder / LATEST
        return path.read_text().strip() if path.is_file() else None

    def _check(self, path: Path) -> CheckpointManifest | str:
        """Return the manifest of a checkpoint, or a message about its damage. Each rank checks some of the files."""

        def read() -> CheckpointManifest:
            manifest = CheckpointManifest.read(path)
            manifest.check_sizes(path)
            return manifest

        damage = ""
        manifest: Any = None
        try:
            manifest = self._on_first(read)
            for name in list(manifest.files)[self.rank :: self.ranks]:
                manifest.check_file(path, name)
        except (CheckpointError, OSError) as error:
            damage = str(error)
        return next(filter(None, self._gather(damage)), manifest)

    def _gather(self, one: Any) -> list[Any]:
        """Return the objects of all ranks, on every rank."""
        every: list[Any] = [None] * self.ranks
        dist.all_gather_object(every, one, group=self.group)
        return every

    def _on_first(self, make: Any) -> Any:
        """Call `make` on rank 0 and return its result on every rank; if it raises an error, every rank raises it."""
        box: list[Any] = [None, None]
        if self.rank == 0:
            try:
                box[0] = make()
            except (CheckpointError, OSError) as error:
                box[1] = str(error)
        dist.broadcast_object_list(box, group=self.group, group_src=0)
        if box[1] is not None:
            raise CheckpointError(box[1])
        return box[0]


def _first(error: CheckpointException) -> str:
    """Return the first failure that PyTorch has gathered, as one line."""
    failure = next(iter(error.failures.values()))[0]
    if isinstance(failure, UnpicklingError):  # PyTorch would advise to run the code in the file
        return "one of its files contains Python objects, which are never read"
    return str(failure).splitlines()[0] if str(failure) else type(failure).__name__
