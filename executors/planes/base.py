"""The `Plane` protocol: starts and stops processes of a job somewhere, and reports their ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from forebay.system.processes import ProcessIdentity


class Capability(StrEnum):
    """What a plane can do beyond starting and stopping."""

    SAME_FILE_SYSTEM = "same file system"  # job folder and logs are written in place
    ADOPTS_ORPHANS = "adopts orphans"  # processes that a role left behind are stopped too


@dataclass(frozen=True)
class Launch:
    """One process to start.

    command: program and arguments. environment: the whole of it, nothing is inherited.
    log_path: where stdout and stderr are appended.
    """

    role: str
    index: int
    command: Sequence[str]
    environment: Mapping[str, str]
    log_path: Path


class Execution(Protocol):
    """One started process."""

    @property
    def launch(self) -> Launch:
        """What was started."""

    @property
    def identity(self) -> ProcessIdentity:
        """Its process."""

    def poll(self) -> int | None:
        """Its exit code (a negative signal number where one ended it); None while it runs."""


@dataclass(frozen=True)
class Ended:
    """A process came to its end without being asked to."""

    execution: Execution
    exit_code: int


class Plane(Protocol):
    """Runs processes. Used from one thread."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What else it can do."""

    def start(self, launch: Launch) -> Execution:
        """Start a process.

        Raises:
            ConfigError: when the declared interpreter cannot be run.
            InfrastructureError: when this place cannot start a process now.
        """

    def events(self) -> list[Ended]:
        """Ends since the last call, each told once."""

    def stop(self, grace_seconds: float) -> None:
        """End every process that it started: politely first, by force after the grace."""
