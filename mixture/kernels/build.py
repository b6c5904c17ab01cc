"""From kernels to machine code: numba generates LLVM IR, and LLVM compiles it to one object file.

Only a process that finds no object file for this machine runs this; nothing else imports numba. The
machine code calls neither Python nor an allocator, and raises nothing.
"""

from __future__ import annotations

import sys
from typing import Any

import llvmlite.binding as llvm
from numba import cfunc, types

from forebay.mixture.kernels import columns, ids, numbers
from forebay.mixture.kernels.codes import ENTRIES
from forebay.mixture.kernels.library import target_machine

_OUTSIDE = {"memcpy", "memmove", "memset", "memcmp", "bcmp"}  # LLVM emits these for byte loops
_FUNCTIONS: dict[str, Any] = {
    "view_columns": columns.view_columns,
    "encode_dense": numbers.encode_dense,
    "encode_ids": ids.encode_ids,
    "encode_list": ids.encode_list,
}


def build_object(machine: Any) -> bytes:
    """Machine code of every entry as an object file. machine: an LLVM target machine.

    Raises:
        RuntimeError: when a kernel needs external symbols.
    """
    whole = llvm.parse_assembly("")
    for name, count in ENTRIES.items():
        whole.link_in(_module(name, count))
    _optimise(whole, machine)
    declared = {each.name for each in whole.functions if each.is_declaration}
    outside = {name for name in declared if not name.startswith("llvm.")}
    if outside - _OUTSIDE:
        raise RuntimeError(f"the kernels need {sorted(outside - _OUTSIDE)}")
    return bytes(machine.emit_object(whole))


def _module(name: str, count: int) -> Any:
    """One entry with everything it calls; only the entry itself is visible."""
    compiled = cfunc(types.int64(*[types.int64] * count), error_model="numpy")(_FUNCTIONS[name])
    module = llvm.parse_assembly(compiled.inspect_llvm())
    entry = module.get_function(compiled.native_name)
    entry.name = name
    for each in (*module.functions, *module.global_variables):
        if not each.is_declaration:
            each.linkage = "external" if each.name == name else "internal"
    return module


def _optimise(module: Any, machine: Any) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(module, passes)


if __name__ == "__main__":
    sys.stdout.buffer.write(build_object(target_machine()))
