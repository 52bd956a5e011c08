"""How PyTorch's distributed checkpoints are stored here: tensors in its own files, all that is told of them as JSON.

PyTorch writes what it tells of tensors with pickle, and a pickle that somebody has put there runs what it likes. Here
it is plain JSON, and the files of tensors are read by PyTorch's loader that takes nothing but tensors.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch.distributed._shard.sharded_tensor import Shard, ShardedTensor
from torch.distributed._shard.sharded_tensor.metadata import ShardMetadata
from torch.distributed.checkpoint import FileSystemReader, FileSystemWriter
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)

BLOCK_BYTES = 128 << 20  # of a table that are written or read at once: PyTorch copies what it writes and reads
Told = dict[str, Any]


class Writer(FileSystemWriter):
    """Writes tensors to a folder, one file for each rank; afterwards `told` is what a `Reader` needs, on rank 0."""

    told: Told

    def __init__(self, folder: Any):
        super().__init__(folder, single_file_per_rank=True, sync_files=True, thread_count=1)

    def finish(self, metadata: Metadata, results: list[Any]) -> None:
        """Keep what PyTorch would pickle."""
        stored = [
            [result.index.fqn, _numbers(result.index.offset), place.relative_path, place.offset, place.length]
            for results_of_rank in results
            for result in results_of_rank
            for place in [result.storage_data]
        ]
        tensors = {name: _tell(tensor) for name, tensor in metadata.state_dict_metadata.items()}
        self.told = {"tensors": tensors, "stored": stored}


class Reader(FileSystemReader):
    """Reads the tensors of a folder by what a `Writer` has told."""

    def __init__(self, folder: Any, told: Told):
        super().__init__(folder)
        self._told = told

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """What PyTorch would have pickled."""
        stored = {
            MetadataIndex(name, offset): _StorageInfo(path, start, length)
            for name, offset, path, start, length in self._told["stored"]
        }
        tensors: dict[str, Any] = {name: _understand(tensor) for name, tensor in self._told["tensors"].items()}
        return Metadata(tensors, storage_data=stored, storage_meta=StorageMeta(load_id=self.load_id))


@contextmanager
def sharded() -> Iterator[None]:
    """Keep PyTorch from warning of sharded tensors, which TorchRec's tables still are."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Please use DTensor", FutureWarning)
        yield


def rows_of(local: torch.Tensor, first: int, total: int, group: Any = None) -> ShardedTensor:
    """Rows `first`, `first` + 1, … of a table of `total` rows, of which every rank has some; all ranks call it."""
    with sharded():
        return _in_blocks([(first, local)], total, local.shape[1], group)


def in_blocks(tensors: Mapping[str, Any], group: Any = None) -> dict[str, Any]:
    """The same tensors, sharded ones cut into blocks of rows that share their memory; all ranks call it."""
    made = {}
    for name, tensor in tensors.items():
        made[name] = tensor
        if isinstance(tensor, ShardedTensor):
            shards = [(shard.metadata.shard_offsets[0], shard.tensor) for shard in tensor.local_shards()]
            rows, width = tensor.size()
            made[name] = _in_blocks(shards, rows, width, group)
    return made


def _in_blocks(shards: Iterable[tuple[int, torch.Tensor]], rows: int, width: int, group: Any) -> ShardedTensor:
    blocks, rank = [], torch.distributed.get_rank()
    for first, local in shards:
        step = max(BLOCK_BYTES // max(width * local.element_size(), 1), 1)
        for start in range(0, len(local), step):
            block = local.detach()[start : start + step]
            placed = f"rank:{rank}/{block.device}"
            blocks.append(Shard(block, ShardMetadata([first + start, 0], list(block.shape), placed)))
    return ShardedTensor._init_from_local_shards(blocks, rows, width, process_group=group)


def _tell(tensor: Any) -> Told:
    chunks = [[list(chunk.offsets), list(chunk.sizes)] for chunk in tensor.chunks]
    return {"dtype": str(tensor.properties.dtype).removeprefix("torch."), "size": list(tensor.size), "chunks": chunks}


def _understand(told: Told) -> TensorStorageMetadata:
    chunks = [ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes)) for offsets, sizes in told["chunks"]]
    dtype = getattr(torch, told["dtype"])
    return TensorStorageMetadata(TensorProperties(dtype=dtype), torch.Size(told["size"]), chunks)


def _numbers(offset: Iterable[int] | None) -> list[int] | None:
    return None if offset is None else list(offset)
