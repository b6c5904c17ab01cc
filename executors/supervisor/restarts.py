"""Whether a process that ended is started again: a pure decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from forebay.errors import ConfigError, DataError

BACKOFF_FIRST_SECONDS = 0.1
BACKOFF_MAX_SECONDS = 2.0
# A wrong declaration or bad data is the same after a restart.
FATAL_CODES = frozenset({ConfigError.exit_code, DataError.exit_code})


class Decision(NamedTuple):
    """What happens now, and whether this end counts against `restarts_max`."""

    action: Literal["restart", "fail", "ignore"]
    counted: bool


@dataclass(frozen=True)
class FailoverPolicy:
    """When one process (role and index) is started again.

    restart: on which ends; `always` includes exit code 0.
    restarts_max: this many counted ends are answered by a restart, the next one by `at_limit`.
    at_limit: `fail` ends the job, `ignore` leaves the process ended and the job running.
    fatal_codes: exit codes that end the job at once.
    uncounted_codes: ends that are nobody's fault (an eviction): always restarted, never counted.
    """

    restart: Literal["on_failure", "always", "never"]
    restarts_max: int
    at_limit: Literal["fail", "ignore"] = "fail"
    fatal_codes: frozenset[int] = FATAL_CODES
    uncounted_codes: frozenset[int] = field(default_factory=frozenset)

    def decide(self, ends_so_far: int, exit_code: int) -> Decision:
        """Decide on one end.

        Args:
            ends_so_far: counted ends of this process before this one.
            exit_code: as in `subprocess.Popen.returncode`: negative is a signal's number.

        Raises:
            ValueError: when `ends_so_far` is negative.
        """
        if ends_so_far < 0:
            raise ValueError(f"ends_so_far is {ends_so_far}, it counts from 0")
        if exit_code in self.fatal_codes:
            return Decision("fail", counted=True)
        if self.restart == "never" or (self.restart == "on_failure" and exit_code == 0):
            return Decision("ignore", counted=False)
        if exit_code in self.uncounted_codes:
            return Decision("restart", counted=False)
        if ends_so_far >= self.restarts_max:
            return Decision(self.at_limit, counted=True)
        return Decision("restart", counted=True)


def backoff_seconds(ends: int) -> float:
    """How long to wait before the restart that answers end number `ends` (from 1)."""
    doublings = min(max(ends - 1, 0), 30)
    return min(BACKOFF_FIRST_SECONDS * 2.0**doublings, BACKOFF_MAX_SECONDS)
