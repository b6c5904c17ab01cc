"""The `Plane` protocol: starts, limits and stops processes of a job somewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from forebay.executors.roles.resources import UNLIMITED, Resources
from forebay.system.processes.identity import ProcessIdentity


@dataclass(frozen=True)
class Launch:
    """One process to start.

    command: program and arguments. arguments: those for the role. environment: all of it; nothing
    is inherited. log_path: where stdout and stderr are appended. resources: its first limits.
    """

    role: str
    index: int
    command: Sequence[str]
    environment: Mapping[str, str]
    log_path: Path
    resources: Resources = UNLIMITED
    arguments: Sequence[str] = ()

    @property
    def name(self) -> str:
        """`<role>-<index>`."""
        return f"{self.role}-{self.index}"


class EndReason(StrEnum):
    """Why a process ended, as far as the plane knows."""

    EXIT = "exit"
    SIGNAL = "signal"
    OOM = "oom"  # it needed more memory than its limit


class Ended(NamedTuple):
    """exit_code: negative for a signal. detail: what else the plane knows, in words."""

    reason: EndReason
    exit_code: int
    detail: str = ""


Outcome = Literal["applied", "infeasible", "unsupported"]


class Resized(NamedTuple):
    """Whether limits hold. `infeasible`: not now; what held before does. reason: why not."""

    outcome: Outcome
    reason: str = ""


class Usage(NamedTuple):
    """What a process has used since its start, CPU with children that ended. None: unknown."""

    cpu_seconds: float | None = None
    throttled_seconds: float | None = None
    memory_bytes: int | None = None
    memory_peak_bytes: int | None = None


class Execution(Protocol):
    """One started process. Nothing here waits."""

    @property
    def identity(self) -> ProcessIdentity:
        """Its process."""

    @property
    def limits(self) -> Resized:
        """Whether the limits hold that it was last given."""

    def poll(self) -> int | None:
        """Its exit code (a negative signal number if a signal ended it); None while it runs.

        Called many times a second, also after the end.
        """

    def ended(self) -> Ended:
        """How it ended. Called only after `poll` has told its exit code."""

    def resize(self, to: Resources) -> Resized:
        """Give it other limits."""

    def usage(self) -> Usage | None:
        """What it uses; None once it has ended."""

    def end(self, grace_seconds: float) -> None:
        """End it: politely now, by force at the first `poll` after the grace period."""


class Plane(Protocol):
    """Runs processes. Used from one thread.

    kills: whether one of them can be ended by force, if it hangs say.
    """

    kills: bool

    def start(self, launch: Launch) -> Execution:
        """Start a process. Limits that cannot hold are no error: `Execution.limits` says why.

        Raises:
            ConfigError: when the declared interpreter cannot be run.
            InfrastructureError: when this machine cannot start a process now.
        """

    def stop(self, grace_seconds: float) -> None:
        """End every process that it started: politely first, by force after the grace period.

        Called once, last, whatever happened before; the only call that waits.
        """


# What an entry point of `forebay.planes` names: makes the plane of a job, for a supervisor that
# starts no other child. It is given a name that no other job of this host has.
MakePlane = Callable[[str], Plane]
