"""Training past one machine: ranks under torchrun that each own a range of nodes and of attributes."""

from typing import Any

__all__ = ["embed_shards"]


def __getattr__(name: str) -> Any:
    """Import what needs torch when it is first used."""
    if name != "embed_shards":
        raise AttributeError(f"module 'neural_brane.cluster' has no attribute {name!r}")
    from neural_brane.cluster.embedding import embed_shards

    return embed_shards
