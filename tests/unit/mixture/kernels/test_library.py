"""Machine code of kernels: numba is not imported, and only a private folder is trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.python_code import printed, printed_json

from forebay.mixture.kernels import library
from forebay.mixture.kernels.library import KernelsError, kernels, machine_code, target_machine

LOADED = """
import json, sys
import forebay.mixture.features.encode, forebay.executors.data_executor.executor
import forebay.mixture.serving.scoring, forebay.mixture.serving.raw_rows
import forebay.executors.stages.submit, forebay.executors.driver.service
from forebay.mixture.kernels.library import kernels
found = [[name for name in ("llvmlite", "numba") if name in sys.modules]]
kernels()
found.append([name for name in ("llvmlite", "numba") if name in sys.modules])
print(json.dumps({"loaded": found}))
"""


def test_processes_that_encode_never_import_numba_and_llvmlite_only_for_kernels() -> None:
    kernels()  # or the child would have to build them
    assert printed_json(LOADED, os.environ)["loaded"] == [[], ["llvmlite"]]


def test_a_folder_that_others_may_enter_is_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "forebay" / "kernels"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(library, "_build", lambda: b"built")
    assert machine_code(target_machine()) == b"built"
    assert "the kernels are compiled for this process only" in caplog.text
    assert list(folder.iterdir()) == []
    folder.chmod(0o700)
    assert machine_code(target_machine()) == b"built"
    (stored,) = folder.glob("*.o")
    monkeypatch.setattr(library, "_build", lambda: b"again")
    assert machine_code(target_machine()) == b"built"
    stored.unlink()
    assert machine_code(target_machine()) == b"again"


def test_what_ends_the_build_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(library, "_BUILDER", "forebay.no_such_module")
    with pytest.raises(KernelsError, match=r"ended with 1: .*forebay.no_such_module"):
        machine_code(target_machine())


# All memory above 6 GB of addresses is taken but for four pages: what does not fit there comes to
# lie below, too far away for code that reaches 2 GB.
CUT_UP = """
import ctypes
from forebay.mixture.kernels import library
machine = library.target_machine()
code = library.machine_code(machine)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
page, reserved = 4096, 0x4022  # private, anonymous, without memory behind it
low = libc.mmap(None, 6 << 30, 0, reserved, -1, 0)
for size in (1 << 20, 1 << 16, 8 * page):
    while libc.mmap(None, size, 0, reserved, -1, 0) > low:
        pass
libc.munmap(low + (6 << 30) - 5 * page, 4 * page)
library._linked(machine, code).view_columns
"""


def test_kernels_are_linked_where_memory_is_in_pieces() -> None:
    kernels()
    printed(CUT_UP, os.environ)
