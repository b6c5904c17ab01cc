"""The `Plane` protocol: starts and stops processes of a job somewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from forebay.system.processes.identity import ProcessIdentity


@dataclass(frozen=True)
class Launch:
    """One process to start.

    command: program and arguments. environment: all of it; nothing is inherited.
    log_path: where stdout and stderr are appended.
    """

    role: str
    index: int
    command: Sequence[str]
    environment: Mapping[str, str]
    log_path: Path

    @property
    def name(self) -> str:
        """`<role>-<index>`."""
        return f"{self.role}-{self.index}"


class Execution(Protocol):
    """One started process."""

    @property
    def identity(self) -> ProcessIdentity:
        """Its process."""

    def poll(self) -> int | None:
        """Its exit code (a negative signal number if a signal ended it); None while it runs.

        Called many times a second, also after the end.
        """


class Plane(Protocol):
    """Runs processes. Used from one thread."""

    def start(self, launch: Launch) -> Execution:
        """Start a process.

        Raises:
            ConfigError: when the declared interpreter cannot be run.
            InfrastructureError: when this machine cannot start a process now.
        """

    def stop(self, grace_seconds: float) -> None:
        """End every process that it started: politely first, by force after the grace period.

        Called once, last, whatever happened before.
        """
