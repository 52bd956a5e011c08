"""One job on the machines of a Ray cluster.

python deploy/ray_train.py GRAPH VECTORS RANKS [--gpu]

Ray Train starts the ranks and starts them again where one is lost; they go on from the checkpoint. GRAPH (made by brane
shard) and VECTORS are in a folder that all machines see.
"""

import sys

from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.torch import TorchConfig, TorchTrainer


def train(run: dict) -> None:
    """Train on one rank; Ray has created the process group."""
    from neural_brane.distributed.embedding import embed_shards
    from neural_brane.distributed.launch import join

    with join("cuda" if run["gpu"] else "cpu") as job:
        embed_shards(
            run["graph"],
            run["vectors"],
            job=job,
            checkpoint=f"{run['vectors']}.kept",
            metrics=f"{run['vectors']}.metrics",
            seed=0,
        )


if __name__ == "__main__":
    graph, vectors, ranks, *gpu = sys.argv[1:]
    TorchTrainer(
        train,
        train_loop_config={"graph": graph, "vectors": vectors, "gpu": bool(gpu)},
        torch_config=TorchConfig(backend="cpu:gloo,cuda:nccl" if gpu else "gloo"),
        scaling_config=ScalingConfig(num_workers=int(ranks), use_gpu=bool(gpu)),
        run_config=RunConfig(name="neural-brane", failure_config=FailureConfig(max_failures=10)),
    ).fit()
