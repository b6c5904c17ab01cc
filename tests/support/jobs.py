"""Jobs as their folders tell them, without a process: the state is what the test says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from forebay.executors.job.endpoints import mark_registered
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.progress import Progress
from forebay.executors.job.request import JobRequest, JobStatus, WindowRequest
from forebay.executors.model_line.chain import ModelChain
from forebay.home.format import record_format
from forebay.home.paths import Home
from forebay.system.error_report import ErrorReport
from forebay.system.files import write_atomically
from forebay.system.locks import FileLock
from support.links import link
from support.model_lines import record

START = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass
class ToldJob:
    """A job of pipeline `ads`, window 2026-03-01, generation 1."""

    home: Home
    job_id: str = "ads.main.2026-03-01.g1"

    def __post_init__(self) -> None:
        window = WindowRequest(
            key="2026-03-01", generation=1, start=START, end=START + timedelta(days=1)
        )
        record_format(self.home)
        self.folder.create()
        JobRequest(
            job_id=self.job_id,
            pipeline_name="ads",
            home=str(self.home.root),
            project_root=str(self.home.root),
            pipeline={},
            sources={},
            windows=[window],
        ).write(self.folder.path)
        self.take_over()

    @property
    def folder(self) -> JobFolder:
        return JobFolder(self.home.job(self.job_id))

    @property
    def model(self) -> Any:
        return self.home.model("ads", "main", "2026-03-01", 1)

    def take_over(self) -> JobHandle:
        """As one more owner."""
        with self.folder.launch_lock():
            return JobHandle(self.home, self.job_id, self.folder.next_epoch())

    def tell(self, state: Any, error: ErrorReport | None = None, **more: Any) -> None:
        now = datetime.now(UTC)
        status = JobStatus(
            job_id=self.job_id,
            state=state,
            epoch=1,
            error=error,
            submitted_at=now,
            started_at=now,
            ended_at=now + timedelta(seconds=7),
            **more,
        )
        self.folder.write_status(status)

    def progress(self, window: str = "2026-03-01", **told: Any) -> None:
        write_atomically(
            self.folder.path / "progress.json",
            Progress(window=window, **told).model_dump_json(),
        )

    def register(self, index: int = 0) -> None:
        mark_registered(self.folder.path, index, "here")

    def link(self, clicks: int, before: int = 0) -> None:
        """The window is trained."""
        seen = {"clicks": before + clicks}
        record(ModelChain(self.home, "ads"), link("2026-03-01", seen, {"clicks": before}))

    @contextmanager
    def supervised(self) -> Iterator[None]:
        """While a supervisor lives, a job that runs is not lost."""
        lock = FileLock(self.folder.supervisor_lock)
        assert lock.acquire(1.0)
        try:
            yield
        finally:
            lock.release()


def failed(error: str, message: str, exit_code: int, *, final: bool = False) -> ErrorReport:
    return ErrorReport(error=error, message=message, exit_code=exit_code, final=final)
