"""The program of test_checkpoints.py: two ranks save checkpoints; one, two and four ranks read them, some damaged."""

import json
import shutil
import sys
import warnings
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import torch
from leaving import leave
from ranks import PATIENCE, RANKS
from torch import distributed
from torch.distributed._shard.sharded_tensor import Shard, ShardedTensor
from torch.distributed._shard.sharded_tensor.metadata import ShardMetadata

from neural_brane.distributed import checkpoints as storage
from neural_brane.distributed.checkpoints import Checkpoints
from neural_brane.distributed.exchange import node_range
from neural_brane.errors import CheckpointError
from neural_brane.files.storage import describe_files

ROWS, WIDTH = 103, 4
TABLE = torch.arange(ROWS * WIDTH, dtype=torch.float32).reshape(ROWS, WIDTH)


class State:
    """A table divided among the ranks of a group, and a vector that all ranks have."""

    def __init__(self, group):
        self.own = node_range(ROWS, distributed.get_rank(group), distributed.get_world_size(group))
        self.local, self.weight = torch.zeros(len(self.own), WIDTH), torch.zeros(3)
        shard = Shard(
            self.local, ShardMetadata([self.own.start, 0], [len(self.own), WIDTH], f"rank:{distributed.get_rank()}/cpu")
        )
        with storage.sharded():
            shards = [shard] if len(self.own) else []
            table = ShardedTensor._init_from_local_shards(shards, ROWS, WIDTH, process_group=group)
        self.tensors = {"table": table, "weight": self.weight}

    def fill(self, step):
        self.local.copy_(TABLE[self.own.start : self.own.stop] * step)
        self.weight.fill_(step)

    def holds(self, step):
        expected = State.__new__(State)
        expected.own, expected.local, expected.weight = self.own, torch.zeros_like(self.local), torch.zeros(3)
        expected.fill(step)
        return bool(torch.equal(self.local, expected.local) and torch.equal(self.weight, expected.weight))


def identity(**changes):
    graph = {"name": "graph", "nodes": ROWS, "edges": 1, "attributes": 1, "digest": "12ab"}
    code = {"behaviour": "c", "sample": [1.0], "untried": True}
    same = {"method": "neural-brane", "version": "1", "code": code, "libraries": {}, "seed": 0}
    return same | {"graph": graph | changes.pop("graph", {}), "parameters": {"dim": 4, "epochs": 3} | changes}


def open_checkpoints(folder, group, **changes):
    return Checkpoints(folder, identity(**changes), every=10, free=("epochs",), group=group)


def save(folder, group, first, last):
    kept, state = open_checkpoints(folder, group), State(group)
    kept.find()
    for step in range(first, last + 1, 10):
        state.fill(step)
        kept.save(step, state.tensors, {"sum": step / 10})


def read(folder, group, **changes):
    """Return facts about the checkpoint that is found and read, with warnings, or the error."""
    checkpoints, state = open_checkpoints(folder, group, **changes), State(group)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            kept = checkpoints.find()
            if kept is None:
                return {"none": True}
            checkpoints.read(state.tensors)
        except CheckpointError as error:
            return {"error": str(error)}
    messages = [str(one.message) for one in warned]
    facts = {"step": kept.step, "ranks": kept.ranks, "numbers": kept.numbers, "names": sorted(kept.layout["tensors"])}
    return facts | {"whole": state.holds(kept.step), "warned": messages}


def alone(work):
    """Call a function on rank 0, with a barrier before and after it."""
    distributed.barrier()
    if distributed.get_rank() == 0:
        work()
    distributed.barrier()


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def edit_step(path):
    """Change the number of the next step in a description, as a careless editor would."""
    text = path.read_text()
    path.write_text(text.replace('"step": 30', '"step": 10'))


def hide_objects(path):
    """Replace the tensors of a checkpoint by Python objects, with a description and checksums that fit."""
    manifest = storage.CheckpointManifest.read(path)
    layout = manifest.layout | {"stored": []}
    for name, offset, file, _, _ in manifest.layout["stored"]:
        torch.save(Path("object"), path / file)
        layout["stored"].append([name, offset, file, 0, (path / file).stat().st_size])
    files = describe_files(path, manifest.files)
    replace(manifest, files=files, layout=layout).write(path)


def main(output, groups, rank):
    found, kept = {}, output / "kept"
    if rank < 2:
        found["nothing"] = read(kept, groups[2])
        save(kept, groups[2], 10, 30)
    distributed.barrier()
    found["folders"] = sorted(path.name for path in kept.iterdir())
    for ranks, group in groups.items():
        if rank < ranks:
            found[f"read by {ranks}"] = read(kept, group)
        distributed.barrier()
    if rank < 2:
        found["other parameter"] = read(kept, groups[2], dim=8)
        found["free parameter"] = read(kept, groups[2], epochs=9)
        found["other graph"] = read(kept, groups[2], graph={"digest": "ff00"})
    alone(lambda: shutil.copytree(kept, output / "unfinished"))
    alone(lambda: (output / "unfinished" / "step-00000030" / "checkpoint.json").unlink())
    for name, damage in (("edited", lambda path: edit_step(path / "checkpoint.json")), ("objects", hide_objects)):
        alone(lambda name=name: shutil.copytree(kept, output / name))
        alone(lambda name=name, damage=damage: damage(output / name / "step-00000030"))
        found[name] = read(output / name, groups[4])
    alone(lambda: flip(kept / "step-00000030" / "__1_0.distcp"))
    found["one damaged"] = read(kept, groups[4])
    found["not whole"] = read(output / "unfinished", groups[4])
    alone(lambda: (kept / "step-00000020" / "__0_0.distcp").unlink())
    found["all damaged"] = read(kept, groups[4])
    if rank < 2:
        found["two runs"] = two_runs(output / "shared", groups[2])
    if rank == 0:
        (output / "found.json").write_text(json.dumps(found))


def two_runs(folder, group):
    first, second, state = open_checkpoints(folder, group), open_checkpoints(folder, group), State(group)
    first.find(), second.find()
    first.save(10, state.tensors, {})
    try:
        second.save(10, state.tensors, {})
    except CheckpointError as error:
        return str(error)
    return "saved"


if __name__ == "__main__":
    store, folder, number = sys.argv[1:]
    storage.BLOCK_BYTES = 400  # so that a table has several blocks
    limit = timedelta(seconds=PATIENCE)
    distributed.init_process_group(
        "gloo", store=distributed.FileStore(store, RANKS), rank=int(number), world_size=RANKS, timeout=limit
    )
    main(Path(folder), {ranks: distributed.new_group(list(range(ranks))) for ranks in (1, 2, 4)}, int(number))
    distributed.barrier()
    distributed.destroy_process_group()
    leave()
