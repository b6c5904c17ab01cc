"""Limits on CPU time that hold on a slow machine too: what a quiet machine may take, times how much
slower this one is at the moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

ADDITIONS = 300_000
# Of the machine on which limits were chosen, quiet.
ADDITIONS_SECONDS = 0.0125
SLOWNESS_MAX = 10.0


def _additions_seconds() -> float:
    began, total = time.thread_time(), 0
    for number in range(ADDITIONS):
        total += number
    return time.thread_time() - began


def slowness() -> float:
    """How many times the CPU time of a quiet machine the same work takes now, 1 to 10."""
    took = min(_additions_seconds() for _ in range(3))
    return min(max(1.0, took / ADDITIONS_SECONDS), SLOWNESS_MAX)


@contextmanager
def cpu_limit(
    what: str, seconds: float, clock: Callable[[], float] = time.process_time
) -> Iterator[None]:
    """Fails if the block takes more CPU than `seconds` of a quiet machine.

    `clock` is that of the process, or `time.thread_time`. The speed of this machine is only
    measured if the block took longer: many a test has a thousand of these blocks.
    """
    began = clock()
    yield
    took = clock() - began
    assert took <= seconds or took <= seconds * slowness(), f"{what}: {took:.2f} CPU seconds"
