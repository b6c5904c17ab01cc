"""Links of processes on one host: the job's folder and Unix sockets in it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from forebay.datatasks.tasks import DataTask
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.measures import Progress
from forebay.executors.job.request import JobRequest
from forebay.executors.job.suspicions import ReadingMark, Suspicions
from forebay.executors.link.sockets import JobSocket, dial, listen
from forebay.system.files.durable import write_atomically
from forebay.system.message import Message
from forebay.system.output.error_report import ErrorReport


class _Endpoint(Message):
    """Where the driver listens."""

    address: str


def add_link_arguments(parser: argparse.ArgumentParser) -> None:
    """Those of `RoleLink.arguments`."""
    parser.add_argument("--job", type=Path, required=True)


class LocalLink:
    """A `RoleLink`."""

    def __init__(self, job: Path, role: str = "", index: int = 0) -> None:
        """`job` is the job's folder."""
        self.role, self.index = role, index
        self.job_id = job.name
        self._folder = JobFolder(job)
        self._files = self._folder.process(role, index)
        self.pulse = self._files.pulse

    @property
    def arguments(self) -> Sequence[str]:
        return self._folder.arguments

    def request(self, process: str) -> JobRequest:
        return self._folder.request(process)

    def listen(self) -> JobSocket:
        return listen(self._folder.sockets, self.role, self.index)

    def dial(self, address: str) -> JobSocket:
        return dial(self._folder.sockets, address)

    def serve(self, address: str) -> None:
        endpoint = _Endpoint(address=address)
        write_atomically(self._folder.driver_endpoint, endpoint.model_dump_json())

    def driver(self) -> JobSocket:
        content = self._folder.driver_endpoint.read_bytes()
        try:
            return self.dial(_Endpoint.model_validate_json(content).address)
        except ValidationError as error:
            raise OSError(f"{self._folder.driver_endpoint}: {error}") from error

    def registered(self, address: str) -> None:
        self._files.registered(address)

    def failed(self, failure: ErrorReport) -> None:
        self._files.failed(failure)

    def reported(self) -> Progress | None:
        return self._folder.progress()

    def report(self, progress: Progress) -> None:
        self._folder.report(progress)

    def report_phases(self, seconds: dict[str, float]) -> None:
        self._files.report_phases(seconds)

    def mark(self, task: DataTask) -> ReadingMark:
        return self.suspicions.mark(self.index, task)

    @property
    def suspicions(self) -> Suspicions:
        return self._folder.suspicions

    @property
    def journal(self) -> Path:
        return self._folder.journal
