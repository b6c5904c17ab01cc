"""Memory access by address for compiled kernels, which numba does not provide.

An address is an int64, a place counts values from there. Nothing here checks whether the memory is
valid: whoever calls a kernel has checked the lengths (`mixture/kernels/arrow_columns.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit, types
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """A function for kernels: it neither raises nor allocates, and divides like the processor."""
    return cast("Function", njit(error_model="numpy")(function))


def inlined(function: Function) -> Function:
    """A kernel that is inlined into its callers: loops with calls are not vectorised."""
    return cast("Function", njit(error_model="numpy", forceinline=True)(function))


def _element(context: Any, builder: Any, kind: Any, base: Any, place: Any) -> tuple[Any, Any]:
    wanted = context.get_value_type(kind)
    start = builder.inttoptr(base, wanted.as_pointer())
    return builder.gep(start, [place], source_etype=wanted), wanted


def _load(kind: Any) -> Callable[[int, int], Any]:
    @intrinsic
    def load(context: Any, base: Any, place: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer, wanted = _element(context, builder, signature.return_type, *arguments)
            return builder.load(pointer, align=1, typ=wanted)

        return kind(types.int64, types.int64), generate

    return cast("Callable[[int, int], Any]", load)


def _store(kind: Any) -> Callable[[int, int, Any], None]:
    @intrinsic
    def store(context: Any, base: Any, place: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            pointer, _ = _element(context, builder, signature.args[2], *arguments[:2])
            builder.store(arguments[2], pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, kind), generate

    return cast("Callable[[int, int, Any], None]", store)


def _same_bits(kind: Any, source: Any) -> Callable[[Any], Any]:
    @intrinsic
    def bits(context: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(signature.return_type))

        return kind(source), generate

    return cast("Callable[[Any], Any]", bits)


@intrinsic
def _trailing_zeros(context: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        undefined_at_zero = context.get_constant(types.boolean, 0)
        return builder.cttz(arguments[0], undefined_at_zero)

    return types.uint64(types.uint64), generate


load_i8: Callable[[int, int], int] = _load(types.int8)
load_i16: Callable[[int, int], int] = _load(types.int16)
load_i32: Callable[[int, int], int] = _load(types.int32)
load_i64: Callable[[int, int], int] = _load(types.int64)
load_u8: Callable[[int, int], int] = _load(types.uint8)
load_u16: Callable[[int, int], int] = _load(types.uint16)
load_u32: Callable[[int, int], int] = _load(types.uint32)
load_u64: Callable[[int, int], int] = _load(types.uint64)
load_f32: Callable[[int, int], float] = _load(types.float32)
load_f64: Callable[[int, int], float] = _load(types.float64)
store_u8 = _store(types.uint8)
store_i32 = _store(types.int32)
store_i64 = _store(types.int64)
store_u64 = _store(types.uint64)
store_f32 = _store(types.float32)
store_f64 = _store(types.float64)
bits_of_f64: Callable[[float], int] = _same_bits(types.int64, types.float64)
f64_of_bits: Callable[[int], float] = _same_bits(types.float64, types.int64)
unsigned: Callable[[int], int] = _same_bits(types.uint64, types.int64)
signed: Callable[[int], int] = _same_bits(types.int64, types.uint64)
trailing_zeros = cast("Callable[[int], int]", _trailing_zeros)
