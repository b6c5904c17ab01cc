"""When a component that ended is started again: a pure decision."""

from __future__ import annotations

from collections.abc import Sequence

# Ends that are older count no more: one end a day is no reason to give up in a week.
MEMORY_SECONDS = 600.0
RESTARTS_MAX = 8
FIRST_DELAY_SECONDS = 0.5
DELAY_MAX_SECONDS = 10.0


def restart_delay(ends: Sequence[float], now: float) -> float | None:
    """Seconds to wait before a component is started again.

    Args:
        ends: when it ended so far, in seconds of a steady clock, this end included.
        now: the same clock.

    Returns:
        None when it ended more than `RESTARTS_MAX` times within `MEMORY_SECONDS`: give up.
    """
    recent = sum(1 for end in ends if now - end < MEMORY_SECONDS)
    if recent > RESTARTS_MAX:
        return None
    return min(FIRST_DELAY_SECONDS * 2.0 ** max(recent - 1, 0), DELAY_MAX_SECONDS)
