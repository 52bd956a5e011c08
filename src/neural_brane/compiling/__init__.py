"""How kernels are compiled, kept and run: on any machine, in forked processes and in several threads at once."""

from neural_brane.compiling.kernel import njit
from neural_brane.compiling.layer import check_threads

__all__ = ["check_threads", "njit"]
