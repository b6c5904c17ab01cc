"""`forebay run` without a terminal: plan windows, submit the job, watch it, judge the result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forebay.config.load import Project
from forebay.config.pipelines import PipelineSpec
from forebay.config.windows import Window, first_window_key, is_warm_start, warm_start_window
from forebay.datatasks.asked import asked_windows
from forebay.datatasks.ledger import Ledger, WindowPlan
from forebay.datatasks.planning import PlanReport, plan_windows
from forebay.errors import (
    ConfigError,
    DataError,
    ForebayError,
    InfrastructureError,
    NotReadyError,
    RowsLostError,
)
from forebay.executors.chain import ModelChain
from forebay.executors.job import JobHandle, JobRequest, JobStatus, WindowRequest, submit
from forebay.executors.job_folder import JobFolder
from forebay.executors.meaning import learns_fingerprint
from forebay.executors.progress import Progress, read_progress
from forebay.executors.summary import Json, build_summary
from forebay.home import Home

POLL_SECONDS = 0.25
SUPERVISOR_RESTARTS_MAX = 3


@dataclass
class Watch:
    """What a run tells while it goes on; the defaults tell nobody."""

    planned: Callable[[PlanReport, Sequence[WindowPlan]], None] = lambda _report, _todo: None
    submitted: Callable[[str, Path], None] = lambda _job_id, _folder: None
    progress: Callable[[Progress, JobStatus], None] = lambda _progress, _status: None


@dataclass
class Run:
    """One invocation of `forebay run` over a range of windows."""

    project: Project
    pipeline: PipelineSpec
    home: Home
    line: str = "main"
    watch: Watch = field(default_factory=Watch)
    _phases: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Open ledger and chain; nothing is read yet."""
        self.ledger = Ledger(self.home, self.pipeline.name)
        self.chain = ModelChain(self.home, self.pipeline.name, self.line)

    def windows(self, first: str, last: str) -> list[Window]:
        """The windows of a range, inside the dataset's start and end.

        Raises:
            ConfigError: for texts that name no window, or windows outside the dataset.
        """
        return asked_windows(self.pipeline, first, last)

    def execute(self, first: str, last: str, *, reprocess: bool = False) -> Json:
        """Train every window of the range that is not trained, and return the summary.

        Raises:
            RowsLostError: when rows planned, served and trained do not agree.
            ForebayError: as the remedy of what went wrong says.
        """
        started = time.perf_counter()
        windows = self.windows(first, last)
        warm = self._warm_start(windows[0])
        job_id = self._job_id(windows, reprocess=reprocess)
        # A reprocess that was cut off goes on with its own generations, it does not begin again.
        unfinished = self._unfinished(job_id) if reprocess else None
        report = self._plan(windows, warm, reprocess=reprocess and unfinished is None)
        todo = self._todo(report)
        self._refuse_gap(todo)
        self._refuse_other_meaning()
        self.watch.planned(report, todo)
        status = None
        if todo:
            status = self._train(self._request(job_id, todo, reprocess=reprocess))
        summary = self._summarise(report, windows, todo, status, started)
        if not summary["rows_agree"]:
            raise RowsLostError(summary["rows_line"])
        return summary

    def _warm_start(self, first: Window) -> Window | None:
        start = self.pipeline.train.warm_start
        if start is None or start >= first.start:
            return None
        existing = self.chain.windows()
        if existing and existing[0] > first.key:
            return None  # the line began without one behind this window
        if existing:
            if not is_warm_start(existing[0]):
                return None
            first = self.pipeline.dataset.grid.parse(first_window_key(existing[0]))
        return warm_start_window(start, first)

    def _plan(self, windows: list[Window], warm: Window | None, *, reprocess: bool) -> PlanReport:
        phase = time.perf_counter()
        report = plan_windows(
            self.project.root,
            self.pipeline,
            self.project.sources,
            self.ledger,
            windows,
            warm_start=warm,
            reprocess=reprocess,
            clock=lambda: datetime.now(UTC),
        )
        self._phases["plan"] = time.perf_counter() - phase
        return report

    def _job_id(self, windows: list[Window], *, reprocess: bool) -> str:
        name = f"{self.pipeline.name}-{self.line}-{windows[0].key}-{windows[-1].key}"
        return f"{name}-reprocess" if reprocess else name

    def _unfinished(self, job_id: str) -> JobStatus | None:
        folder = JobFolder(self.home.job(job_id))
        status = folder.observed_status(folder.stored_status())
        return None if status is None or status.state == "succeeded" else status

    def _todo(self, report: PlanReport) -> list[WindowPlan]:
        todo = []
        for plan in report.plans:
            if self.chain.link(plan.window, plan.generation) is None:
                todo.append(plan)
            elif self.ledger.trained(plan.window) != plan.generation:
                # The job died between the model's link and the ledger's mark.
                self.ledger.mark_trained(plan.window, plan.generation, {"repaired": True})
        return todo

    def _refuse_gap(self, todo: Sequence[WindowPlan]) -> None:
        """A window's model starts from the window before it, so none may be left out."""
        if not todo:
            return
        trained = [key for key in self.chain.windows() if key < todo[0].window]
        if not trained:
            return
        grid = self.pipeline.dataset.grid
        last = trained[-1]
        expected = last.partition("_")[2] if "_" in last else grid.after(grid.parse(last)).key
        if todo[0].window > expected:
            raise ConfigError(
                f"windows {expected} up to {todo[0].window} are not trained yet, and each starts "
                f"from the one before it: run --from {expected}"
            )

    def _refuse_other_meaning(self) -> None:
        windows = self.chain.windows()
        if windows and (newest := self.chain.newest(windows[-1])) is not None:
            learns = learns_fingerprint(self.pipeline, self.project.sources)
            self.chain.require_same_meaning(newest, learns)

    def _request(self, job_id: str, todo: Sequence[WindowPlan], *, reprocess: bool) -> JobRequest:
        windows = [
            WindowRequest(
                key=plan.window,
                generation=plan.generation,
                start=plan.start,
                end=plan.end,
                warm_start=is_warm_start(plan.window),
            )
            for plan in todo
        ]
        return JobRequest.of(
            job_id,
            self.home.root,
            self.project.root,
            self.pipeline,
            self.project.sources,
            windows,
            line=self.line,
            reprocess=reprocess,
        )

    def _train(self, request: JobRequest) -> JobStatus:
        job_dir = self.home.job(request.job_id)
        handle = submit(self.home, request)
        self.watch.submitted(request.job_id, job_dir)
        lost = 0
        phase = time.perf_counter()
        status = self._follow(handle, job_dir)
        while status.state == "lost" and lost < SUPERVISOR_RESTARTS_MAX:
            lost += 1
            status = self._follow(submit(self.home, request), job_dir)
        self._phases["job"] = time.perf_counter() - phase
        if status.state != "succeeded":
            raise job_error(status, job_dir)
        return status

    def _follow(self, handle: JobHandle, job_dir: Path) -> JobStatus:
        while True:
            status = handle.status()
            progress = read_progress(job_dir)
            if progress is not None:
                self.watch.progress(progress, status)
            if status.state not in {"submitted", "running"}:
                return status
            time.sleep(POLL_SECONDS)

    def _summarise(
        self,
        report: PlanReport,
        windows: list[Window],
        todo: Sequence[WindowPlan],
        status: JobStatus | None,
        started: float,
    ) -> Json:
        from forebay.executors.evaluation import evaluate  # scipy: not before it is needed

        phase = time.perf_counter()
        keys = [window.key for window in windows]
        evaluation = evaluate(self.pipeline, self.chain, keys)
        self._phases["evaluate"] = time.perf_counter() - phase
        self._phases["total"] = time.perf_counter() - started
        plans = [plan for plan in report.plans if plan.window in set(keys)]
        warm = next((plan for plan in report.plans if is_warm_start(plan.window)), None)
        facts: dict[str, Any] = {
            "restarts": dict(status.restarts) if status else {},
            "phases_seconds": self._phase_seconds(status),
            "trained_windows": [plan.window for plan in todo],
            "reused_windows": [key for key in keys if key not in {p.window for p in todo}],
            "stale_windows": self._stale(),
            "published": self._published(),
            "storage_calls": report.storage_calls,
            "notes": list(report.notes),
        }
        return build_summary(self.pipeline, self.chain, plans, warm, evaluation, facts)

    def _phase_seconds(self, status: JobStatus | None) -> dict[str, float]:
        phases = dict(self._phases)
        if status is not None:
            progress = read_progress(self.home.job(status.job_id))
            phases |= {
                f"trainer.{name}": seconds
                for name, seconds in (progress.phases_seconds if progress else {}).items()
            }
        return {name: round(seconds, 3) for name, seconds in phases.items()}

    def _stale(self) -> list[str]:
        links = [self.chain.newest(key) for key in self.chain.windows()]
        return [link.window for link in links if link and self.chain.stale_because(link)]

    def _published(self) -> Json | None:
        published = self.chain.published()
        return published.model_dump(mode="json") if published else None


def job_error(status: JobStatus, job_dir: Path) -> ForebayError:
    """The exception that carries the remedy of a job that did not succeed."""
    error = status.error
    message = error.message if error else f"the job ended as {status.state}"
    kinds: dict[int, type[ForebayError]] = {1: ConfigError, 2: NotReadyError, 3: DataError}
    kind = kinds.get(error.exit_code, InfrastructureError) if error else InfrastructureError
    return kind(f"{message}\nlogs: {job_dir / 'logs'}")
