"""Matrix products of float32 numbers on units that multiply bfloat16.

A float32 is kept as the bfloat16 nearest to it and the bfloat16 nearest to the remainder, in two planes. Of a product's
four terms the three largest are computed: the result is as exact as float32 but for one digit.
"""

import triton
import triton.language as tl


@triton.jit
def split(value, HALF: tl.constexpr):
    """The nearest numbers of a shorter type, and the nearest to the remainders."""
    near = value.to(HALF)
    return near, (value - near.to(tl.float32)).to(HALF)


@triton.jit
def store_split(place, plane, value, mask):
    """Write numbers to both planes; `plane` is the distance from the first to the second."""
    near, rest = split(value, place.dtype.element_ty)
    tl.store(place, near, mask=mask)
    tl.store(place + plane, rest, mask=mask)


@triton.jit
def load_split(place, plane, mask):
    """Read numbers from both planes; masked ones are zero."""
    return tl.load(place, mask=mask, other=0.0), tl.load(place + plane, mask=mask, other=0.0)


@triton.jit
def add_product(total, left, left_rest, right, right_rest):
    """total + left × right, adding the small terms first."""
    total = tl.dot(left, right_rest, total)
    total = tl.dot(left_rest, right, total)
    return tl.dot(left, right, total)
