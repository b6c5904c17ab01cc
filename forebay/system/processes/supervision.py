"""One process that is started again when it ends: what jobs and the embedded Airflow share.

It does not know where the process runs, what it does, or which signal ends it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, NamedTuple, Protocol, TypeVar

_DOUBLINGS_MAX = 30


class Decision(NamedTuple):
    """counted: whether this end counts against `restarts_max`. delay_seconds: before a restart."""

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

        ends_so_far: counted ends of this process before this one, without forgotten ones.
        exit_code: as in `subprocess.Popen.returncode`: negative is a signal's number. None if the
        process could not be started.

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


class Started(Protocol):
    def poll(self) -> int | None:
        """Its exit code (the negative number of a signal that ended it); None while it runs."""


P = TypeVar("P", bound=Started)


class SupervisedProcess(Generic[P]):
    """Knows whether its process runs and when the next one is due. Nothing here waits.

    Instants are seconds of one steady clock, the caller's.

    running: the process, until its end was taken. due: when to start the next one; None if none is
    planned.
    """

    def __init__(
        self,
        start: Callable[[], P],
        policy: RestartPolicy,
        *,
        due: float | None = None,
        ends_before: int = 0,
    ) -> None:
        """`ends_before`: counted ends under an earlier owner, which are never forgotten.

        due: when to start it for the first time; None if the owner calls `start`.
        """
        self.running: P | None = None
        self.due = due
        self._start = start
        self._policy = policy
        self._ends_before = ends_before
        self._ends: list[float] = []

    def start(self) -> P:
        """Start the process; nothing is planned afterwards, even if that fails."""
        self.due = None
        self.running = self._start()
        return self.running

    def is_due(self, now: float) -> bool:
        return self.due is not None and self.due <= now

    def take_end(self) -> int | None:
        """The exit code when the process has ended; each end is reported once."""
        code = self.running.poll() if self.running is not None else None
        if code is not None:
            self.running = None
        return code

    def plan(self, exit_code: int | None, now: float) -> Decision:
        """Decide on an end, and plan the restart if there is one.

        exit_code: None if the process could not be started. now: when it ended.
        """
        decision = self._policy.decide(self.ends(now), exit_code)
        if decision.counted:
            self._ends.append(now)
        restarts = decision.action == "restart"
        self.due = now + decision.delay_seconds if restarts else None
        return decision

    def start_again(self, due: float) -> None:
        """Plan the restart after an end that does not count, whatever the policy says."""
        self.due = due

    def ends(self, now: float) -> int:
        """Counted ends that are not forgotten."""
        self._ends = [end for end in self._ends if now - end < self._policy.memory_seconds]
        return self._ends_before + len(self._ends)

    def forget(self) -> None:
        """The owner has stopped the process: nothing runs and nothing is planned."""
        self.running = self.due = None
