"""The processor's prefetch instruction, which Numba does not offer."""

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_READ, _KEEP, _DATA = 0, 3, 1  # for reading; worth keeping in every cache; data, not instructions


@intrinsic
def prefetch(typing_context, table, row, column):
    """Ask for the cache line of table[row, column]; changes nothing but the time a later read takes."""

    def generate(context, builder, signature, arguments):
        table_type = signature.args[0]
        array = context.make_array(table_type)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, table_type, array, arguments[1:])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        hints = [ir.Constant(number, hint) for hint in (_READ, _KEEP, _DATA)]
        builder.call(instruction, [builder.bitcast(place, byte), *hints])
        return context.get_dummy_value()

    return types.none(table, types.int64, types.int64), generate
