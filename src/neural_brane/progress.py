"""What a running method tells about itself."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a training run stands."""

    epoch: int  # 1, 2, …
    epochs: int
    done: int  # units so far
    total: int  # units if the run goes to its last epoch
    loss: float | None  # the mean over the epoch so far; None where the method has none
    rate: float  # units per second, lately
    unit: str = "triplets"  # what is counted, in the plural


Reporter = Callable[[Progress], None]
