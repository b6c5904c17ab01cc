"""`RoleLink` and `JobLink`: the two ends between a process of a job and its supervisor.

A plane whose processes share no folder has other implementations of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from forebay.datatasks.tasks import DataTask
from forebay.executors.job.measures import MeasuresFile, Progress
from forebay.executors.job.request import JobRequest
from forebay.executors.job.suspicions import ReadingMark, Suspicions
from forebay.home.paths import Home
from forebay.system.output.error_report import ErrorReport


class Address(Protocol):
    """Where a process listens, and the token that it wants. Keep it until that is over."""

    address: str  # for messages to other processes
    token: str

    @property
    def grpc_target(self) -> str:
        """For gRPC, in this process only."""

    @property
    def flight_location(self) -> str:
        """For Arrow Flight, in this process only."""

    def close(self) -> None:
        """What it holds here; the address stays where it is."""


class RoleLink(Protocol):
    """The end of one process, which does not know where the others run."""

    role: str
    index: int

    def request(self, process: str) -> JobRequest:
        """What the job has to do. process: this one's name in errors.

        Raises:
            UsageError: when no job was submitted.
        """

    def listen(self) -> Address:
        """A new address with a new token; those of earlier processes in this one's place end.

        Raises:
            InfrastructureError: when nobody could listen there.
        """

    def dial(self, address: str) -> Address:
        """Another process of the job.

        Raises:
            OSError: when the process that listened there is gone and another took its place.
            InfrastructureError: when this is not an address, or is open to others.
        """

    def serve(self, address: str) -> None:
        """This process is the driver from now on; it listens there."""

    def driver(self) -> Address:
        """The newest driver; raises as `dial`, OSError before the first one too."""

    def registered(self, address: str) -> None:
        """The driver knows this process."""

    def failed(self, failure: ErrorReport) -> None:
        """Say why this process is about to end."""

    def reported(self) -> Progress | None:
        """What the newest trainer of the job reported, maybe a process before this one."""

    def report(self, progress: Progress) -> None:
        """Replace that."""

    def report_phases(self, seconds: dict[str, float]) -> None:
        """Say how long this process has done what, for measures."""

    def mark(self, task: DataTask) -> ReadingMark:
        """Say what this process reads, in case it dies of it."""

    @property
    def suspicions(self) -> Suspicions:
        """What processes that died may have died of."""

    @property
    def journal(self) -> Path:
        """A file that outlives this process, as long as the job runs."""

    @property
    def arguments(self) -> Sequence[str]:
        """With these a child of this process finds the same link."""


class ProcessLink(Protocol):
    """The supervisor's end of one process."""

    @property
    def log(self) -> Path:
        """Where its plane appends what it prints."""

    @property
    def pulse(self) -> Path:
        """Where it shows that it makes progress."""

    def failure(self) -> ErrorReport | None:
        """Why the newest process says that it failed."""

    def is_registered(self) -> bool:
        """Whether the driver knows the newest process."""

    def phases(self) -> dict[str, float]:
        """Seconds by what the newest process says that it did."""

    def forget(self) -> None:
        """What an earlier process left must not be taken for the next one's."""

    def new_temporary(self) -> Path:
        """An empty folder for the next process's temporary files."""


class JobLink(Protocol):
    """The supervisor's end of one job."""

    @property
    def home(self) -> Home:
        """The home that the job belongs to."""

    @property
    def job_id(self) -> str:
        """Unique in the home."""

    @property
    def name(self) -> str:
        """Unique on this host."""

    @property
    def arguments(self) -> Sequence[str]:
        """With these a process of the job finds its link."""

    @property
    def suspicions(self) -> Suspicions:
        """What processes that died may have died of."""

    @property
    def measures(self) -> MeasuresFile:
        """Kept as long as the job's logs."""

    def request(self, process: str) -> JobRequest:
        """As of a role."""

    def process(self, role: str, index: int) -> ProcessLink:
        """The end of one process, whether it runs or not."""

    def progress(self) -> Progress | None:
        """The trainer's newest report, or None before the first."""

    def take_poke(self) -> bool:
        """Whether somebody wants the job's row to be looked at."""

    def close(self) -> None:
        """The processes are gone: remove what only they could use.

        Raises:
            InfrastructureError: when it cannot be removed.
        """
