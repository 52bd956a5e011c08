"""Keep the state of a training on many ranks in a folder that any number of ranks can read.

A checkpoint is a folder `step-NNNNNNNN` with a manifest, `checkpoint.json`, written last; `LATEST` names the newest
complete one. The last two stay, so that a damaged one costs some steps and not the run. All hosts see the same folder.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch.distributed import checkpoint as dcp
from torch.distributed._shard.sharded_tensor import Shard, ShardedTensor
from torch.distributed._shard.sharded_tensor.metadata import ShardMetadata
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)

from neural_brane.errors import CheckpointError
from neural_brane.files.checkpoints import AFRESH, require_same
from neural_brane.files.storage import Manifest, atomic, describe_files

# PyTorch would pickle the layout of its files, and a pickle runs whatever was put there. Here the layout is plain JSON,
# and the files of tensors are read by PyTorch's loader that takes nothing but tensors.

KEEP = 2
EVERY = 100  # steps between two checkpoints
LATEST = "LATEST"
BLOCK_BYTES = 128 << 20  # of a table that are written or read at once: PyTorch copies what it writes and reads
Layout = dict[str, Any]  # `tensors`, by name: dtype, size and chunks; `stored`: where each block lies


class Writer(FileSystemWriter):
    """Write tensors to a folder, one file for each rank; afterwards rank 0 has their `layout`."""

    layout: Layout

    def __init__(self, folder: Any):
        super().__init__(folder, single_file_per_rank=True, sync_files=True, thread_count=1)

    def finish(self, metadata: Metadata, results: list[Any]) -> None:
        """Keep what PyTorch would pickle."""
        stored = [
            [
                result.index.fqn,
                None if result.index.offset is None else list(result.index.offset),
                place.relative_path,
                place.offset,
                place.length,
            ]
            for results_of_rank in results
            for result in results_of_rank
            for place in [result.storage_data]
        ]
        tensors = {
            name: {
                "dtype": str(tensor.properties.dtype).removeprefix("torch."),
                "size": list(tensor.size),
                "chunks": [[list(chunk.offsets), list(chunk.sizes)] for chunk in tensor.chunks],
            }
            for name, tensor in metadata.state_dict_metadata.items()
            if isinstance(tensor, TensorStorageMetadata)
        }
        self.layout = {"tensors": tensors, "stored": stored}


class Reader(FileSystemReader):
    """Read the tensors of a folder by the layout that a `Writer` has kept."""

    def __init__(self, folder: Any, layout: Layout):
        super().__init__(folder)
        self._layout = layout

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Return what PyTorch would have pickled."""
        stored = {
            MetadataIndex(name, offset): _StorageInfo(path, start, length)
            for name, offset, path, start, length in self._layout["stored"]
        }
        tensors: dict[str, Any] = {}
        for name, about in self._layout["tensors"].items():
            chunks = [ChunkStorageMetadata(torch.Size(first), torch.Size(size)) for first, size in about["chunks"]]
            kind = TensorProperties(dtype=getattr(torch, about["dtype"]))
            tensors[name] = TensorStorageMetadata(kind, torch.Size(about["size"]), chunks)
        return Metadata(tensors, storage_data=stored, storage_meta=StorageMeta(load_id=self.load_id))


@contextmanager
def sharded() -> Iterator[None]:
    """Keep PyTorch from warning of sharded tensors, which TorchRec's tables still are."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Please use DTensor", FutureWarning)
        yield


def in_blocks(tensors: Mapping[str, Any], group: Any = None) -> dict[str, Any]:
    """The same tensors, sharded ones cut into blocks of rows that share their memory; all ranks call it."""
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
    """Contents of `checkpoint.json`: the run, the step that comes next, how many ranks saved it, and plain numbers."""

    FORMAT: ClassVar = "neural-brane distributed checkpoint"
    VERSION: ClassVar = 1
    ERROR: ClassVar = CheckpointError
    FILE: ClassVar = "checkpoint.json"
    AGAIN: ClassVar = "it cannot be used"

    run: dict[str, Any]
    step: int
    ranks: int
    numbers: dict[str, Any]
    layout: Layout


class Checkpoints:
    """The checkpoints of a run in a folder; all ranks call its methods together.

    identity: what the run is, from `neural_brane.files.checkpoints.identify`; those of another run are refused, but for
    parameters that are `free` to differ. every: steps between two. keep: how many stay. group: a process group on the
    CPU for what ranks tell each other; the default one when None.
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
        self._latest: str | None = None  # as this run has last seen or written it

    def due(self, step: int) -> bool:
        """Whether to save after so many steps."""
        return step > 0 and step % self.every == 0

    def find(self) -> CheckpointManifest | None:
        """The newest whole checkpoint, which `read` then reads; None where there is none yet."""
        damage: list[str] = []
        self._latest = self._tell_all(self._read_latest)
        for name in self._tell_all(self._list):
            found = self._check(self.folder / name)
            if isinstance(found, str):
                damage.append(found)
                continue
            require_same(self.folder / name, found.run, self.identity, self._free)
            if damage and self.rank == 0:
                warnings.warn(f"{'; '.join(damage)}; the checkpoint before it, {name}, is used", stacklevel=2)
            self._found = self.folder / name, found
            return found
        if damage:
            raise CheckpointError(f"{'; '.join(damage)}; no checkpoint in {self.folder} is whole; {AFRESH}")
        return None

    def read(self, tensors: Mapping[str, Any]) -> None:
        """Fill tensors, plain or sharded in any way, with what the checkpoint that was found has under their names."""
        assert self._found is not None  # noqa: S101  a mistake of ours
        path, found = self._found
        reader = Reader(path, found.layout)
        try:
            with sharded():
                for name, tensor in tensors.items():
                    kept = found.layout["tensors"].get(name)
                    if kept is None or kept["size"] != list(tensor.size()):
                        size = "absent" if kept is None else kept["size"]
                        raise CheckpointError(f"{path}: '{name}' is {size}, not {list(tensor.size())}; {AFRESH}")
                dcp.load(in_blocks(tensors, self.group), storage_reader=reader, process_group=self.group)
        except CheckpointException as error:
            raise CheckpointError(f"{path}: cannot be read ({_first(error)}); {AFRESH}") from error

    def save(self, step: int, tensors: Mapping[str, Any], numbers: Mapping[str, Any]) -> None:
        """Save the state before `step`. One that cannot be written costs no more than the file: training goes on.

        tensors: sharded over the ranks, or plain and the same on all. numbers: anything that JSON can hold.
        """
        path = self.folder / f"step-{step:08d}"
        self._tell_all(lambda: self._make_room(path))
        writer = Writer(path)
        try:
            with sharded():
                dcp.save(in_blocks(tensors, self.group), storage_writer=writer, process_group=self.group)
        except CheckpointException as error:
            if self.rank == 0:
                warnings.warn(f"{path}: could not be written ({_first(error)}); training goes on", stacklevel=2)
            return
        files: dict[str, Any] = {}
        for some in self._gather(describe_files(path, [file.name for file in path.glob(f"__{self.rank}_*")])):
            files |= some

        def finish() -> None:
            """Write the manifest of a checkpoint whose files are all there, name it, and remove the older ones."""
            run = dict(self.identity)
            CheckpointManifest(files, run, step, self.ranks, dict(numbers), writer.layout).write(path)
            with atomic(self.folder / LATEST) as draft:
                draft.write_text(path.name)
            self._latest = path.name
            for name in self._list()[self.keep :]:
                shutil.rmtree(self.folder / name, ignore_errors=True)

        self._tell_all(finish)

    def _make_room(self, path: Path) -> None:
        """Remove what an earlier attempt has left at this step; refuse a folder that another run has written to."""
        if self._read_latest() != self._latest:
            raise CheckpointError(f"{self.folder}: another run saves its checkpoints there too; name another folder")
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)

    def _list(self) -> list[str]:
        """The folders of checkpoints, newest first: the one that `LATEST` names, then those before it."""
        found = sorted((path.name for path in self.folder.glob("step-*") if path.is_dir()), reverse=True)
        latest = self._read_latest()
        return found if latest not in found else found[found.index(latest) :]

    def _read_latest(self) -> str | None:
        path = self.folder / LATEST
        return path.read_text().strip() if path.is_file() else None

    def _check(self, path: Path) -> CheckpointManifest | str:
        """Return the manifest of a checkpoint, or what is wrong with it. Each rank looks at some of its files."""

        def read() -> CheckpointManifest:
            found = CheckpointManifest.read(path)
            found.check_sizes(path)
            return found

        wrong = ""
        found: Any = None
        try:
            found = self._tell_all(read)
            for name in list(found.files)[self.rank :: self.ranks]:
                found.check_file(path, name)
        except (CheckpointError, OSError) as error:
            wrong = str(error)
        return next(filter(None, self._gather(wrong)), found)

    def _gather(self, one: Any) -> list[Any]:
        """Return what each rank gives, on every rank."""
        every: list[Any] = [None] * self.ranks
        dist.all_gather_object(every, one, group=self.group)
        return every

    def _tell_all(self, make: Any) -> Any:
        """Return what rank 0 makes, or raise its error, on every rank, so that none waits for it."""
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
    """The first of the failures that PyTorch has gathered, in a line."""
    failure = next(iter(error.failures.values()))[0]
    return str(failure).splitlines()[0] if str(failure) else type(failure).__name__
