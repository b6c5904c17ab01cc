"""A process and its parent: what the parent passes to it, and that it ends with its parent.

Imports nothing slow: its users are about to exec another program.
"""

from __future__ import annotations

import ctypes
import os
import signal

# The job that a process belongs to; its descendants inherit it.
JOB_ID_NAME = "FOREBAY_JOB_ID"
# Pid of the process that started this one, so that this one can check whether it still is its
# parent.
PARENT_PID_NAME = "FOREBAY_PARENT_PID"

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask the kernel for this signal when the thread that started this process ends.

    A parent that ended before this call sends none. A change of user cancels the request.
    """
    _prctl(_PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parent ends, so that none gets out of reach."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if _LIBC.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
