"""Signals, and how processes end. Light: what Airflow parses uses it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

# Of a process whose own memory or code is broken.
CRASHES = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGILL, signal.SIGFPE})
# The exit code of a process that was ended by SIGKILL.
KILLED = -int(signal.SIGKILL)


def how_it_ended(code: int) -> str:
    """An exit code in words; a negative one is a signal."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal
        return f"was ended by signal {-code}"


def is_from_outside(number: int) -> bool:
    """Whether a signal says that somebody, or the kernel for want of memory, ended a process."""
    return number in {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def was_killed(number: int) -> bool:
    """Whether it was SIGKILL, which may be anyone's."""
    return number == signal.SIGKILL


def took_too_long(number: int) -> bool:
    """Whether it was the limit on CPU time."""
    return number == signal.SIGXCPU


def when_told_to_end(handler: Callable[[int, FrameType | None], None]) -> None:
    """Call this on SIGTERM and on Ctrl-C."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handler)


def ignore_ctrl_c() -> None:
    """It reaches all processes of a terminal, and is for whoever asked."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def end_group(group: int, *, kill: bool = False) -> None:
    """End a process group, which may have ended: SIGTERM, or SIGKILL."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL if kill else signal.SIGTERM)


def give_way_first() -> None:
    """Let the kernel end this process before all others when memory runs out."""
    with suppress(OSError):  # then the kernel chooses as it likes
        Path("/proc/self/oom_score_adj").write_text("1000")
