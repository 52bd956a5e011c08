"""Neural-Brane's kernels on the CPU, in Numba."""

from neural_brane.kernels.cpu.step import embed, hide, threads, train

__all__ = ["embed", "hide", "threads", "train"]
