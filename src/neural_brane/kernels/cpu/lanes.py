"""Whole registers in Numba: a lane is LANE float32 numbers of a table's row as one value.

Numba does not vectorise loops that read and write rows of one table in turn: it cannot exclude that they overlap, and
it keeps running results in memory. These functions work on whole registers instead.
"""

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

from neural_brane.kernels.compiling import njit
from neural_brane.kernels.model import LANE

# Numba optimises a function again inside each of its callers, however deep, and makes code for every one of them. So
# what has a single caller becomes part of it before it is compiled at all; what has several is compiled on its own.

compiled = njit(error_model="numpy")
inlined = numba.njit(error_model="numpy", inline="always")


_FLOAT, _NUMBER = ir.FloatType(), ir.IntType(32)
VECTOR = ir.VectorType(_FLOAT, LANE)
_READ, _KEEP, _DATA = 0, 3, 1  # prefetch for reading; keep in every cache; data, not instructions


class Lane(types.Type):
    """Numba's type of a lane."""

    def __init__(self):
        super().__init__("Lane")


@register_model(Lane)
class _LaneModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        super().__init__(manager, kind, VECTOR)


lane = Lane()


def place_of(context, builder, kind, table, *position):
    """The address of table[row, column], or of table[k]."""
    array = context.make_array(kind)(context, builder, table)
    return cgutils.get_item_pointer(context, builder, kind, array, position)


def lane_of(context, builder, kind, table, row, column):
    """The address of the lane table[row, column : column + LANE]."""
    return builder.bitcast(place_of(context, builder, kind, table, row, column), VECTOR.as_pointer())


def broadcast(builder, number):
    """A vector that repeats one number, of any type."""
    vector = ir.VectorType(number.type, LANE)
    single = builder.insert_element(ir.Constant(vector, ir.Undefined), number, _NUMBER(0))
    return builder.shuffle_vector(single, single, ir.Constant(ir.VectorType(_NUMBER, LANE), [0] * LANE))


def fused(builder, a, b, c):
    """a × b + c of three vectors."""
    kind = ir.FunctionType(VECTOR, [VECTOR] * 3)
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.fmuladd.v16f32"), [a, b, c])


@intrinsic
def load(typing_context, table, row, column):
    """table[row, column : column + LANE]."""

    def generate(context, builder, signature, arguments):
        return builder.load(lane_of(context, builder, signature.args[0], *arguments), align=4)

    return lane(table, types.int64, types.int64), generate


@intrinsic
def store(typing_context, value, table, row, column):
    """Write a lane to table[row, column : column + LANE]."""

    def generate(context, builder, signature, arguments):
        builder.store(arguments[0], lane_of(context, builder, signature.args[1], *arguments[1:]), align=4)
        return context.get_dummy_value()

    return types.none(lane, table, types.int64, types.int64), generate


@intrinsic
def fill(typing_context, number):
    """A lane that repeats one number."""
    return lane(types.float32), lambda context, builder, signature, arguments: broadcast(builder, *arguments)


@intrinsic
def if_greater(typing_context, a, b, then, otherwise):
    """The numbers of `then` where a > b, of `otherwise` where not."""

    def generate(context, builder, signature, arguments):
        a, b, then, otherwise = arguments
        return builder.select(builder.fcmp_ordered(">", a, b), then, otherwise)

    return lane(lane, lane, lane, lane), generate


@intrinsic
def multiply_add(typing_context, a, b, c):
    """a × b + c, rounded once where the processor has such an instruction."""
    return lane(lane, lane, lane), lambda context, builder, signature, arguments: fused(builder, *arguments)


@intrinsic
def total(typing_context, value):
    """The sum of a lane's numbers, always in the same order: one half is added to the other, again and again."""

    def generate(context, builder, signature, arguments):
        part, width = arguments[0], LANE
        while width > 1:
            width //= 2
            low, high = (ir.Constant(ir.VectorType(_NUMBER, width), list(range(at, at + width))) for at in (0, width))
            part = builder.fadd(builder.shuffle_vector(part, part, low), builder.shuffle_vector(part, part, high))
        return builder.extract_element(part, _NUMBER(0))

    return types.float32(lane), generate


def ask_for(builder, place):
    """Ask for the cache line of an address."""
    byte = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, _NUMBER, _NUMBER, _NUMBER])
    instruction = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
    hints = [ir.Constant(_NUMBER, hint) for hint in (_READ, _KEEP, _DATA)]
    builder.call(instruction, [builder.bitcast(place, byte), *hints])


def _generate_prefetch(context, builder, signature, arguments):
    ask_for(builder, place_of(context, builder, signature.args[0], *arguments))
    return context.get_dummy_value()


@intrinsic
def prefetch(typing_context, table, row, column):
    """Ask for the cache line of table[row, column]: a later read of it takes less time, nothing else changes."""
    return types.none(table, types.int64, types.int64), _generate_prefetch


@intrinsic
def prefetch_entry(typing_context, array, k):
    """The same for array[k]."""
    return types.none(array, types.int64), _generate_prefetch
