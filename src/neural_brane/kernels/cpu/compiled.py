"""How kernels are compiled.

Numba optimises a function again inside each of its callers, however deep, and makes code for every one of them. So what
has a single caller becomes part of it before it is compiled at all; what has several is compiled on its own.
"""

import numba

from neural_brane.compiling import njit

compiled = njit(error_model="numpy")
inlined = numba.njit(error_model="numpy", inline="always")
