"""Neural-Brane's kernels on the CPU, in Numba."""

from neural_brane.kernels.cpu.step import Trainer, embed, hide, threads, train

__all__ = ["Trainer", "embed", "hide", "threads", "train"]
