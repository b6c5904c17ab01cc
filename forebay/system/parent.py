"""A process and the one that started it: what it is told, and that it ends with it.

Imports nothing that takes time: what uses it is about to become another program.
"""

from __future__ import annotations

import ctypes
import os
import signal

# The job that a process belongs to; its descendants inherit it.
JOB_ID_NAME = "FOREBAY_JOB_ID"
# Pid of the process that started this one, which thereby sees whether that is still its parent.
PARENT_PID_NAME = "FOREBAY_PARENT_PID"

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask the kernel for this signal when the thread that started this process ends.

    A parent that ended before this call sends none. A change of user takes the request back.
    """
    _prctl(_PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none is out of reach."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
