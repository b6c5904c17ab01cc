"""`forebay run` without a terminal: plan windows, submit the job, watch it, judge the result."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from forebay.config.specs.windows import Window, is_warm_start
from forebay.datatasks.planning.planner import PlanReport, plan_windows
from forebay.datatasks.plans.plan import WindowPlan
from forebay.datatasks.window_range import asked_range
from forebay.errors import (
    ConfigError,
    DataError,
    ForebayError,
    InfrastructureError,
    RowsLostError,
    UsageError,
    error_of,
)
from forebay.executors.evaluation.run_summary import RunFacts, Summary
from forebay.executors.job.handle import GONE_SECONDS, JobHandle
from forebay.executors.job.host import host_of
from forebay.executors.job.measures import Progress
from forebay.executors.job.request import JobRequest, JobStatus
from forebay.executors.job.stored_jobs import EXPIRED_SECONDS, HeartbeatWatch, find_job
from forebay.executors.job.submit import attach, submit
from forebay.executors.model_line.adjoining import require_all_adjoining
from forebay.executors.model_line.commands import of_line, retrain_command
from forebay.executors.model_line.link import Link
from forebay.executors.model_line.start import (
    drop_unused_warm_start,
    overlap_with,
    require_checkpoint,
    require_compatible,
    require_no_gap,
    stale_warnings,
    warm_start_notes,
    warm_start_of,
)
from forebay.executors.right_of_way import right_of_way
from forebay.executors.roles.table import SUPERVISOR
from forebay.executors.serving.serving_path import ServingPath
from forebay.executors.stages.lost_jobs import end_trained_jobs
from forebay.executors.stages.publish import publish_window
from forebay.executors.stages.target import LineTarget
from forebay.home.job_id import range_job_id, window_job_id
from forebay.home.store.open import store_of
from forebay.system.clock import utc_now

POLL_SECONDS = 0.25
SUPERVISOR_RESTARTS_MAX = 3
_ASKED_SECONDS = 1.0


@dataclass
class Watch:
    """What a run reports while it works; the defaults report nothing."""

    doing: Callable[[str], None] = lambda _text: None
    warned: Callable[[str], None] = lambda _text: None
    waiting: Callable[[str], None] = lambda _text: None
    planned: Callable[[PlanReport, Sequence[WindowPlan]], None] = lambda _report, _todo: None
    submitted: Callable[[str], None] = lambda _job_id: None
    progress: Callable[[Progress, JobStatus], None] = lambda _progress, _status: None
    away: Callable[[InfrastructureError], None] = lambda _error: None
    ending: Callable[[str], None] = lambda _job_id: None


class GaveWayError(InfrastructureError):
    """The job was ended because others are to work on the line; it continues after them."""


@dataclass
class Run:
    """gives_way: why a job of it is to end for now, asked again and again; empty to go on."""

    target: LineTarget
    watch: Watch = field(default_factory=Watch)
    gives_way: Callable[[], str] = lambda: ""
    _phases: dict[str, float] = field(default_factory=dict)

    def execute(
        self,
        first: str,
        last: str,
        *,
        reprocess: bool = False,
        on_stale: Literal["train", "refuse"] = "refuse",
    ) -> Summary:
        """Train every window of the range that is not trained, and return the summary.

        first, last: see `asked_range`.

        Raises:
            ConfigError: for texts that name no window, windows outside the dataset, a gap, or a
                stale model to start from.
            RowsLostError: when rows planned, served and trained do not agree.
            DataError: when the model that serves is missing or damaged.
            ForebayError: of the class that matches the remedy.
        """
        started = time.perf_counter()
        pipeline, chain = self.target.pipeline, self.target.chain
        if reprocess and not first:
            raise UsageError("--reprocess trains again what you name: write --from and --to")
        due = None if first else self.target.due_from()
        windows = asked_range(pipeline, first, last, due, utc_now())
        warm = warm_start_of(pipeline, chain, windows[0])
        job_id = range_job_id(
            pipeline.name, chain.line, windows[0].key, windows[-1].key, reprocess=reprocess
        )
        again = self._again(job_id, windows) if reprocess else frozenset()
        require_compatible(chain, pipeline, self.target.project.sources)
        # Checked before making new plans that nothing could be trained from.
        self._require_start([*([warm] if warm else []), *windows], again)
        report = self._plan(windows, warm, again)
        todo, kept = list[WindowPlan](), list[WindowPlan]()
        for plan in report.plans:
            (kept if self._is_trained(plan) else todo).append(plan)
        self.watch.planned(report, todo)
        status, stale = None, list[str]()
        if todo:
            from forebay.executors.advice.line import line_warnings

            self._serving.require_own()
            stale = self._require_trainable(todo, on_stale)
            drop_unused_warm_start(chain, warm)
            for text in line_warnings(pipeline, chain):
                self.watch.warned(text)
            why = f"windows {todo[0].window} to {todo[-1].window} are trained"
            with right_of_way(chain, why, self.watch.warned):
                status = self._train(self.target.job_request(job_id, todo, reprocess=reprocess))
            self._require_trained(todo)
        self.watch.doing("publishing the model and summing up the windows")
        end_trained_jobs(self.target)
        notes = [
            *report.notes,
            *filter(None, [self._serving.elsewhere]),
            *stale,
            *self.target.changed_notes(kept),
            *warm_start_notes(pipeline, chain, windows[0]),
        ]
        notes += self._publish(windows[-1])
        summary = self._summarise(report.storage_calls, notes, windows, todo, status, started)
        if not summary.rows_agree:
            raise RowsLostError(summary.rows_line)
        self._require_whole_model()
        self._serving.bring_up()
        return summary

    def train_open(self, window: Window, plan_of: Callable[[Window], WindowPlan]) -> Link:
        """Train a window that goes on now, until it is over and a link of the line.

        Raises:
            ForebayError: as `execute`.
        """
        pipeline, chain = self.target.pipeline, self.target.chain
        require_compatible(chain, pipeline, self.target.project.sources)
        self._require_start([window], frozenset())
        for text in stale_warnings(
            chain,
            [window],
            refused=pipeline.schedule.on_stale == "refuse",
            otherwise=" (schedule.on_stale: refuse)",
        ):
            self.watch.warned(text)
        warm, plan = warm_start_of(pipeline, chain, window), plan_of(window)
        require_all_adjoining(chain, self.target.project.sources, [plan])
        self._serving.require_own()  # now that the home is made, which owns the path
        plans = [plan]
        if warm is not None and self.target.ledger.trained(warm.key) is None:
            plans = [*self._plan([], warm, frozenset()).plans, plan]
        # As Airflow names it, whose run of the window follows it then.
        job_id = window_job_id(pipeline.name, chain.line, window.key, plan.generation)
        request = self.target.job_request(job_id, plans)
        self._end_other(request)
        drop_unused_warm_start(chain, warm)
        self._train(request)
        self._require_trained([plan])
        end_trained_jobs(self.target)
        found = chain.candidate(window.key, plan.generation)
        if found is None:
            raise RowsLostError(f"window {window.key} was removed while it was trained")
        link, unfit = found
        if unfit and pipeline.job.publish.when != "never":
            self.watch.warned(f"window {window.key} does not serve: {unfit}")
        self._serving.bring_up()
        return link

    def _plan(
        self, windows: list[Window], warm: Window | None, again: AbstractSet[str]
    ) -> PlanReport:
        phase = time.perf_counter()
        self.watch.doing("planning: asking each source for the data of the windows")
        project = self.target.project
        report = plan_windows(
            project.root,
            self.target.pipeline,
            project.sources,
            self.target.ledger,
            windows,
            warm_start=warm,
            again=again,
            clock=utc_now,
            waiting=self.watch.waiting,
        )
        self._phases["plan"] = time.perf_counter() - phase
        return report

    def _require_trainable(
        self, todo: Sequence[WindowPlan], on_stale: Literal["train", "refuse"]
    ) -> list[str]:
        """What is planned can be trained; returns warnings, already given, of stale models."""
        chain = self.target.chain
        self.target.require_rows(todo)
        require_all_adjoining(chain, self.target.project.sources, todo)
        stale = stale_warnings(
            chain,
            [plan.as_window for plan in todo],
            refused=on_stale == "refuse",
            otherwise=". To train on top of it: --on-stale train",
        )
        for text in stale:
            self.watch.warned(text)
        return stale

    def _again(self, job_id: str, windows: Sequence[Window]) -> AbstractSet[str]:
        """Windows that a reprocess plans anew: all of them, unless its job was interrupted.

        That job continues with its own generations, as long as nothing has trained or planned its
        windows since; what it was refused to train is planned anew.
        """
        job = find_job(self.target.home, job_id)
        if job is None or job.status.state == "succeeded":
            return {window.key for window in windows}
        ledger, lost = self.target.ledger, job.status.state == "lost"
        refused = {each.key for each in job.windows if ledger.proposed(each.key) == each.generation}
        is_unfinished = any(
            (plan := ledger.latest_plan(window.key)) is not None
            and plan.generation == window.generation
            # A lost one may have been killed after its last window.
            and (lost or not self.target.is_trained(window.key, window.generation))
            for window in job.windows
        )
        return refused if refused or is_unfinished else {window.key for window in windows}

    def _require_start(self, windows: Sequence[Window], again: AbstractSet[str]) -> None:
        """Require that the first window to be trained has a model to start from.

        Raises:
            ConfigError: when windows before it are not trained, or the checkpoint that it starts
                from is not kept, or when a window shares rows with a different trained one.
        """
        pipeline, chain = self.target.pipeline, self.target.chain
        asked = [each for each in windows if not is_warm_start(each.key)]
        overlap = overlap_with(chain, pipeline.dataset.grid, asked)
        if overlap:
            raise ConfigError(overlap)
        first = next((each for each in windows if self._has_to_train(each, again)), None)
        if first is None:
            return
        require_no_gap(chain, pipeline.dataset.grid, first)
        require_checkpoint(chain, chain.before(first), pipeline.job.checkpoints_kept)

    def _has_to_train(self, window: Window, again: AbstractSet[str]) -> bool:
        plan = self.target.ledger.latest_plan(window.key)
        return plan is None or not self._is_trained(plan) or window.key in again

    def _train(self, request: JobRequest) -> JobStatus:
        self.watch.doing("submitting the job")
        handle = submit(self.target.home, request)
        self.watch.submitted(request.job_id)
        self.watch.doing("starting the job: its processes load TensorFlow")
        phase = time.perf_counter()
        try:
            status = self._follow_on(handle, request)
        except KeyboardInterrupt:
            self._end_here(handle)
            raise
        self._phases["job"] = time.perf_counter() - phase
        if status.state != "succeeded":
            raise job_error(status, handle)
        return status

    def _follow_on(self, handle: JobHandle, request: JobRequest) -> JobStatus:
        """As `_follow`; a job whose supervisor is lost starts again."""
        lost = 0
        status = self._follow(handle)
        while status.state == "lost" and lost < SUPERVISOR_RESTARTS_MAX:
            lost += 1
            status = self._follow(submit(self.target.home, request))
        return status

    def _end_other(self, request: JobRequest) -> None:
        """End a job of the same window that was declared otherwise; this one continues it."""
        job = find_job(self.target.home, request.job_id)
        if job is None or not job.status.is_active or job.row.fingerprint == request.fingerprint:
            return
        self.watch.warned(
            f"the declaration has changed: window {request.windows[-1].key} continues with it from "
            "its newest checkpoint"
        )
        self.end(request.job_id)

    def end(self, job_id: str) -> None:
        """End a job; what it has sealed stays."""
        handle = attach(self.target.home, job_id)
        handle.cancel()
        handle.wait(GONE_SECONDS)

    def _end_here(self, handle: JobHandle) -> None:
        """End a job that runs in this process and would end with it, in the middle of a seal."""
        with suppress(ForebayError):  # nobody hears it: the process ends all the same
            job = handle.look()
            if job.is_here and job.status.pids.get(SUPERVISOR) == os.getpid():
                self.watch.ending(job.job_id)
                self.end(job.job_id)

    def _require_trained(self, plans: Sequence[WindowPlan]) -> None:
        left = [each.window for each in plans if not self._is_trained(each)]
        if left:
            raise RowsLostError(
                f"the job succeeded without training all windows: run it again to train "
                f"{', '.join(left)}"
            )

    def _is_trained(self, plan: WindowPlan) -> bool:
        return self.target.is_trained(plan.window, plan.generation)

    def _publish(self, last: Window) -> list[str]:
        """Publish the last window if its job was killed after linking it, before publishing it.

        A note for people, if its model may not serve.
        """
        target, chain = self.target.at(last), self.target.chain
        link, serving = chain.newest(last.key), chain.published()
        if link is None or "saved_model" not in link.files:
            return []
        names = (link.window, link.generation, 0)
        if serving is not None and (serving.window, serving.generation, serving.step) == names:
            return []
        reason = publish_window(target, link.generation).reason
        return [f"not published: {reason}"] if reason else []

    def _bring_up(self) -> None:
        """What serves was changed inside a window; training does not wait for a path."""
        try:
            self._serving.bring_up()
        except ForebayError as error:
            self.watch.warned(f"{error}; the next model that serves is tried again")

    @property
    def _serving(self) -> ServingPath:
        return ServingPath(self.target.project, self.target.pipeline, self.target.chain)

    def _require_whole_model(self) -> None:
        """Verify the model that serves, whenever it was published: a model server has no checksums.

        Raises:
            DataError: when part of it is missing or damaged.
        """
        chain, serving = self.target.chain, self.target.chain.published()
        link = None if serving is None else chain.link(serving.window, serving.generation)
        if serving is None or (link is None and not serving.step):
            return
        try:
            store_of(self.target.home).verify(serving.stored)
        except DataError as error:
            if chain.published() != serving:
                return  # another one serves by now, which was verified before it was published
            window = serving.window
            way_out = f"train it again: {retrain_command(chain, window, window)}"
            if serving.pinned:  # no later one serves
                has_more = link is not None and "checkpoint" in link.files
                way_out = of_line(chain, "models serve") + f" {window if has_more else 'WINDOW'}"
                way_out = f"let a whole one serve: {way_out}"
            raise DataError(
                f"the model of window {window}, which serves: {error}, or {way_out}"
            ) from error

    def _follow(self, handle: JobHandle) -> JobStatus:
        """Watch the job to its end; while the database is away, both the job and this continue.

        Raises:
            InfrastructureError: when the database is away for longer than the job waits for it.
        """
        read_at = time.monotonic()
        heartbeat, served_at, asked_at = HeartbeatWatch(), 0.0, 0.0
        while True:
            try:
                job, why = handle.look(), ""
                ours = job.status.is_active and job.row.owner_run is None  # none of Airflow's
                if ours and time.monotonic() - asked_at >= _ASKED_SECONDS:
                    asked_at, why = time.monotonic(), self.gives_way()
            except InfrastructureError as error:
                if time.monotonic() - read_at > GONE_SECONDS:
                    raise
                self.watch.away(error)
                time.sleep(POLL_SECONDS)
                continue
            if why:
                self.end(handle.job_id)
                raise GaveWayError(why)
            read_at, status = time.monotonic(), job.status
            if heartbeat.silent_seconds(job) >= EXPIRED_SECONDS:
                return status.model_copy(update={"state": "lost"})
            progress = job.progress
            if progress is not None:
                self.watch.progress(progress, status)
                if progress.served_at != served_at:
                    served_at = progress.served_at
                    self._bring_up()
            if not status.is_active:
                return status
            time.sleep(POLL_SECONDS)

    def _summarise(
        self,
        storage_calls: int,
        notes: list[str],
        windows: list[Window],
        todo: Sequence[WindowPlan],
        status: JobStatus | None,
        started: float,
    ) -> Summary:
        from forebay.executors.evaluation.range_summary import judge_windows

        phase = time.perf_counter()
        keys = [window.key for window in windows]
        trained = {plan.window for plan in todo}
        facts = RunFacts(
            restarts=dict(status.restarts) if status else {},
            trained_windows=[plan.window for plan in todo],
            reused_windows=[key for key in keys if key not in trained],
            storage_calls=storage_calls,
            notes=[*notes, *(status.hung if status else ())],
        )
        summary = judge_windows(self.target.pipeline, self.target.chain, keys, facts)
        self._phases["evaluate"] = time.perf_counter() - phase
        self._phases["total"] = time.perf_counter() - started
        phases = dict(self._phases)
        progress = host_of(self.target.home).progress(status.job_id) if status else None
        if progress is not None:
            phases |= {f"trainer.{name}": took for name, took in progress.phases_seconds.items()}
        rounded = {name: round(seconds, 3) for name, seconds in phases.items()}
        return summary.model_copy(update={"phases_seconds": rounded})


def job_error(status: JobStatus, handle: JobHandle) -> ForebayError:
    logs = f"logs: {handle.logs}"
    if status.error is None:
        return InfrastructureError(f"the job ended as {status.state}\n{logs}")
    return error_of(status.error.exit_code, f"{status.error.message}\n{logs}")
