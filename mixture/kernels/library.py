"""The kernels' entries as functions: machine code that is compiled once per machine and version.

A file of machine code is code that this process runs, like a `.pyc`: it is read only from a folder
that its user owns and nobody else may enter (docs/internals/security.md).
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from forebay.errors import ForebayError, InfrastructureError
from forebay.mixture.kernels.codes import ENTRIES
from forebay.system.files.private_cache import cache_folder, cached
from forebay.system.liveness import waiting

_BUILD_SECONDS = 300.0
_BUILDER = "forebay.mixture.kernels.build"
_LOG = logging.getLogger(__name__)
_lock = threading.Lock()


class KernelsError(ForebayError):
    """The kernels cannot be built."""


class Kernels(NamedTuple):
    """Entries by name (`entries.py`): int64 in, int64 out. The GIL is released while one runs."""

    view_columns: Callable[..., int]
    encode_dense: Callable[..., int]
    encode_ids: Callable[..., int]
    encode_list: Callable[..., int]
    keeps: object  # what owns the machine code


def kernels() -> Kernels:
    """The entries, loaded once per process; the first process on a machine builds them (7 s).

    Raises:
        InfrastructureError: when they cannot be built.
    """
    with _lock:
        return _loaded()


def start_kernels() -> None:
    """Load the entries before they are needed; an error is only logged, and raised when needed."""
    try:
        kernels()
    except ForebayError as error:
        _LOG.warning("%s", error)


@functools.cache
def _loaded() -> Kernels:
    machine = target_machine()
    return _linked(machine, machine_code(machine))


def target_machine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
        codemodel="default",
    )


def machine_code(machine: Any) -> bytes:
    """The object file of all entries for this machine, from the user's cache if possible."""
    folder = cache_folder(os.environ, "kernels")
    if folder is not None:
        try:
            with waiting():
                return cached(folder, f"{_key(machine)}.o", _build, _BUILD_SECONDS)
        except InfrastructureError as error:
            _LOG.warning("the kernels are compiled for this process only: %s", error)
    return _build()


def _key(machine: Any) -> str:
    """What the machine code depends on: our sources, the compilers, the processor."""
    import llvmlite.binding as llvm

    sources = sorted(Path(__file__).parent.glob("*.py"))
    parts = [source.read_bytes() for source in sources]
    parts += [f"{name} {version(name)}".encode() for name in ("numba", "llvmlite", "numpy")]
    processor = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    parts += [f"{machine.triple} {processor}".encode()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]


def _build() -> bytes:
    """Compile in a process of its own: numba takes 100 MB and seconds, and is needed once."""
    command = [sys.executable, "-m", _BUILDER]
    _LOG.info("compiling the kernels, once for this machine and version; this takes some seconds")
    try:
        with waiting():
            ran = subprocess.run(
                command,
                capture_output=True,
                timeout=_BUILD_SECONDS,
                check=False,
                env={**os.environ, "NUMBA_OPT": "0"},  # LLVM optimises once, when all is together
            )
    except subprocess.TimeoutExpired as error:
        raise KernelsError(f"the kernels were not compiled in {_BUILD_SECONDS:.0f} s") from error
    if ran.returncode:
        lines = ran.stderr.decode(errors="replace").strip().splitlines() or [""]
        raise KernelsError(
            f"{' '.join(command)} ended with {ran.returncode}: {' '.join(lines[-3:])}"
        )
    return ran.stdout


def _linked(machine: Any, code: bytes) -> Kernels:
    import llvmlite.binding as llvm

    # JITLink puts all sections into one piece of memory. LLVM's older linker uses one for each, and
    # aborts the process if two of them are more than 2 GB apart.
    compiler = llvm.create_lljit_compiler(machine, use_jit_link=True)
    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
    for name in ENTRIES:
        builder.export_symbol(name)
    library = builder.link(compiler, "kernels")
    found = {
        name: ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * count)(library[name])
        for name, count in ENTRIES.items()
    }
    return Kernels(**found, keeps=(compiler, library))
