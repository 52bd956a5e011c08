"""What a running method tells about itself."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a training run stands."""

    epoch: int  # 1, 2, …
    epochs: int
    done: int  # triplets so far
    total: int  # triplets if the run goes to its last epoch
    loss: float  # the mean of −ln σ over the epoch so far
    rate: float  # triplets per second, lately


Reporter = Callable[[Progress], None]
