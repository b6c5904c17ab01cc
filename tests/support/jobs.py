"""Jobs as they are stored, without a process: the test decides their state."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import update

from forebay.executors.job import job_changes
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.job_rows import JobRow
from forebay.executors.job.measures import Progress
from forebay.executors.job.request import JobRequest, JobStatus, WindowRequest
from forebay.executors.job.stored_jobs import StoredJob, stored_job
from forebay.executors.job.submit import attach
from forebay.executors.model_line.chain import ModelChain
from forebay.home.database.open import database_of
from forebay.home.database.tables import jobs
from forebay.home.paths import Home
from forebay.home.runtime import runtime_of
from forebay.system.files.locks import FileLock
from forebay.system.output.error_report import ErrorReport
from support.links import link
from support.model_lines import record
from support.toy_roles.jobs import PIPELINE

START = datetime(2026, 3, 1, tzinfo=UTC)


def request(
    home: Home,
    job_id: str,
    windows: dict[str, int],
    pipeline: str = "ads",
    line: str = "main",
    **more: Any,
) -> JobRequest:
    """A request for windows, each with its generation. It declares no sources."""
    return JobRequest(
        job_id=job_id,
        pipeline_name=pipeline,
        line=line,
        home=str(home.root),
        project_root="/project",
        pipeline={"dataset": PIPELINE["dataset"]},
        sources={},
        windows=[
            WindowRequest(key=key, generation=number, start=START, end=START + timedelta(days=1))
            for key, number in windows.items()
        ],
        **more,
    )


def store_job(
    made: JobRequest, state: Any = "submitted", run: str | None = None, **more: Any
) -> int:
    home = Home(Path(made.home))
    database = database_of(home)
    database.prepare()
    folder = JobFolder(home.job(made.job_id))
    folder.create()
    folder.write(made)
    epoch = database.transact(lambda rows: job_changes.submit(rows, made, runtime_of(home), run))
    assert epoch is not None
    if state != "submitted" or more:
        report_job(home, made.job_id, epoch, state, **more)
    return epoch


def report_job(home: Home, job_id: str, epoch: int, state: Any, **more: Any) -> None:
    told = {"job_id": job_id, "state": state, "epoch": epoch, "submitted_at": datetime.now(UTC)}
    status = JobStatus.model_validate(told | more)
    database_of(home).transact(lambda rows: job_changes.report(rows, status, None))


def folder_of(job: JobHandle | StoredJob) -> JobFolder:
    """Of a job of this host."""
    return JobFolder(job.home.job(job.job_id))


def of_another_host(job: ToldJob) -> None:
    elsewhere = update(jobs).where(jobs.c.job_id == job.job_id).values(runtime="elsewhere:/home")
    database_of(job.home).transact(lambda rows: rows.execute(elsewhere))


@dataclass
class ToldJob:
    home: Home
    job_id: str = "ads.main.2026-03-01.g1"

    def __post_init__(self) -> None:
        self.cancel_seen: int | None = None  # the open request, when the state was told last
        self.submission = store_job(request(self.home, self.job_id, {"2026-03-01": 1}))

    @property
    def folder(self) -> JobFolder:
        return JobFolder(self.home.job(self.job_id))

    @property
    def model(self) -> Any:
        return self.home.model("ads", "main", "2026-03-01", 1)

    @property
    def row(self) -> JobRow:
        return stored_job(self.home, self.job_id).row

    def take_over(self, run: str | None = None) -> JobHandle:
        return attach(self.home, self.job_id, run)

    def tell(self, state: Any, error: ErrorReport | None = None, **more: Any) -> None:
        self.cancel_seen = self.row.cancel_epoch
        now = datetime.now(UTC)
        times = {"started_at": now, "ended_at": now + timedelta(seconds=7)}
        told = {"error": error, **times, **more}
        report_job(self.home, self.job_id, self.submission, state, **told)

    def progress(self, window: str = "2026-03-01", **told: Any) -> None:
        progress = Progress(window=window, **told)
        self.folder.report(progress)
        report = progress.model_dump_json()
        database_of(self.home).transact(
            lambda rows: job_changes.beat(rows, self.job_id, self.submission, report)
        )

    def beat(self) -> None:
        database_of(self.home).transact(
            lambda rows: job_changes.beat(rows, self.job_id, self.submission, None)
        )

    def link(self, clicks: int, before: int = 0) -> None:
        chain, parent = ModelChain(self.home, "ads"), None
        if before:
            parent = ("2026-02-28", 1)
            record(chain, link(parent[0], {"clicks": before}))
        seen = {"clicks": before + clicks}
        record(chain, link("2026-03-01", seen, {"clicks": before}, parent=parent))

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
