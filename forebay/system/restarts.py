"""Decides whether and when a process that ended is started again: pure functions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

_DOUBLINGS_MAX = 30


class Decision(NamedTuple):
    """What happens now, and whether this end counts against `restarts_max`.

    delay_seconds: how long to wait before the restart.
    """

    action: Literal["restart", "fail", "ignore"]
    counted: bool
    delay_seconds: float = 0.0


@dataclass(frozen=True)
class RestartPolicy:
    """When one process is started again.

    restart: after which exits; `always` includes exit code 0.
    restarts_max: this many counted ends lead to a restart, the next one to `at_limit`.
    delay_first_seconds: before the first restart; it doubles with every counted end.
    delay_max_seconds: the longest delay.
    memory_seconds: counted ends that are older are forgotten.
    at_limit: `fail` gives up, `ignore` leaves the process ended and its owner running.
    fatal_codes: exit codes that are the same after a restart: give up at once.
    uncounted_codes: exit codes of ends that are no fault (an eviction): always restarted, never
    counted.
    """

    restart: Literal["on_failure", "always", "never"]
    restarts_max: int
    delay_first_seconds: float
    delay_max_seconds: float
    memory_seconds: float = math.inf
    at_limit: Literal["fail", "ignore"] = "fail"
    fatal_codes: frozenset[int] = frozenset()
    uncounted_codes: frozenset[int] = frozenset()

    def decide(self, ends_so_far: int, exit_code: int | None) -> Decision:
        """Decide on one end.

        Args:
            ends_so_far: counted ends of this process before this one, without forgotten ones.
            exit_code: as in `subprocess.Popen.returncode`: negative is a signal's number. None if
                the process could not be started.

        Raises:
            ValueError: when `ends_so_far` is negative.
        """
        if ends_so_far < 0:
            raise ValueError(f"ends_so_far is {ends_so_far}, but it counts from 0")
        if exit_code in self.fatal_codes:
            return Decision("fail", counted=True)
        if self.restart == "never" or (self.restart == "on_failure" and exit_code == 0):
            return Decision("ignore", counted=False)
        if exit_code in self.uncounted_codes:
            return Decision("restart", counted=False, delay_seconds=self.delay(ends_so_far))
        if ends_so_far >= self.restarts_max:
            return Decision(self.at_limit, counted=True)
        return Decision("restart", counted=True, delay_seconds=self.delay(ends_so_far + 1))

    def delay(self, ends: int) -> float:
        """Seconds to wait before the restart that answers counted end number `ends` (from 1)."""
        doublings = min(max(ends - 1, 0), _DOUBLINGS_MAX)
        return min(self.delay_first_seconds * 2.0**doublings, self.delay_max_seconds)
