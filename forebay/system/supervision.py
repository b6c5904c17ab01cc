"""One process that is started again when it ends: what jobs and the embedded Airflow share.

It does not know where the process runs, what it does, or which signal ends it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from forebay.system.restarts import Decision, RestartPolicy


class Started(Protocol):
    """A process that was started, wherever it runs."""

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
        """Nothing is started yet.

        Args:
            start: starts the process; `start` passes on what it raises.
            policy: decides on every end.
            due: when to start it for the first time; None if the owner calls `start`.
            ends_before: counted ends under an earlier owner; these are never forgotten.
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
        """Whether a planned start is due."""
        return self.due is not None and self.due <= now

    def take_end(self) -> int | None:
        """The exit code when the process has ended; each end is reported once."""
        code = self.running.poll() if self.running is not None else None
        if code is not None:
            self.running = None
        return code

    def plan(self, exit_code: int | None, now: float) -> Decision:
        """Decide on an end, and plan the restart if there is one.

        Args:
            exit_code: None if the process could not be started.
            now: when it ended.
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
