"""`forebay run --follow`: train what is due, then the window that goes on now, and so on."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from forebay.config.specs.jobs import CONTINUOUS
from forebay.config.specs.windows import Window
from forebay.datatasks.planning.growth import is_declared, open_window
from forebay.datatasks.plans.plan import WindowPlan
from forebay.errors import (
    ConfigError,
    FencedError,
    ForebayError,
    InfrastructureError,
    LineBusyError,
    NotReadyError,
)
from forebay.executors.evaluation.run_summary import RunFacts
from forebay.executors.job.handle import GONE_SECONDS
from forebay.executors.job.stored_jobs import find_job
from forebay.executors.model_line.commands import of_line
from forebay.executors.model_line.lease import living_holder
from forebay.executors.model_line.link import Link
from forebay.executors.model_line.rows.pause_rows import BY_PEOPLE
from forebay.executors.right_of_way import following_job
from forebay.executors.run import GaveWayError, Run, Watch
from forebay.executors.stages.target import LineTarget
from forebay.system.clock import utc_now

WAIT_SECONDS = 2.0


@dataclass
class Follow:
    """Follows the streams of one line.

    declared: reads the declarations, for each window anew. trained: told of each window once it is
    a link.
    """

    declared: Callable[[], LineTarget]
    watch: Watch
    trained: Callable[[Link], None] = lambda _link: None
    _told: str = ""
    _judging: threading.Thread | None = None

    def execute(self) -> None:
        """Until the dataset ends, or an error.

        Raises:
            ConfigError: where the pipeline's windows are not to grow.
            ForebayError: as `Run.execute`.
        """
        looked_at = time.monotonic()
        while True:
            try:
                target = self.declared()
                due, asked = _due(target), _asked(target)
            except InfrastructureError as error:  # the database, say: the job goes on without it
                if time.monotonic() - looked_at > GONE_SECONDS:
                    raise
                self._wait(str(error))
                continue
            looked_at, dataset = time.monotonic(), target.pipeline.dataset
            if target.pipeline.job.process != CONTINUOUS:
                raise ConfigError(
                    f"pipeline {target.pipeline.name!r} cannot be followed: declare job.process: "
                    f"{CONTINUOUS}"
                )
            if dataset.end is not None and due >= dataset.end:
                self._await_judgement()
                return
            self._go_on(target, due, asked)

    def _go_on(self, target: LineTarget, due: datetime, asked: str) -> None:
        """Train one window, or wait for a moment. asked: see `_asked`."""
        window = target.pipeline.dataset.grid.at(utc_now())
        run = Run(target, self.watch, gives_way=lambda: _asked(target))
        try:
            if asked:
                job = following_job(target.chain)
                if job is not None and job.row.owner_run is None:  # of who followed before
                    run.end(job.job_id)
                self._wait(asked)
            elif due >= window.end:  # the dataset has not begun, or the clock was set back
                self._wait(f"the next window begins at {due:%Y-%m-%dT%H:%MZ}")
            elif due < window.start:
                if holder := living_holder(target.home, target.pipeline.name, target.line):
                    raise LineBusyError(f"job {holder} trains the line")
                run.execute(target.pipeline.dataset.grid.at(due).key, "")
            else:
                link = run.train_open(window, lambda each: _plan(target, each))
                self._told = ""
                self.trained(link)
                self._judge(target, link)
        except GaveWayError as asked_for:
            self._wait(str(asked_for))
        except (FencedError, LineBusyError) as other:  # somebody else is at it, and goes on
            self._wait(str(other))
        except NotReadyError as error:
            if not _is_empty(target, due):
                raise
            self._wait(str(error))

    def _wait(self, why: str) -> None:
        if why != self._told:
            self.watch.waiting(why)
        self._told = why
        time.sleep(WAIT_SECONDS)

    def _judge(self, target: LineTarget, link: Link) -> None:
        """Beside the training of the next window, which does not wait for it."""
        self._await_judgement()
        self._judging = threading.Thread(target=self._judged, args=(target, link), daemon=True)
        self._judging.start()

    def _await_judgement(self) -> None:
        if self._judging is not None:
            self._judging.join()

    def _judged(self, target: LineTarget, link: Link) -> None:
        from forebay.executors.evaluation.range_summary import judge_windows

        try:
            judge_windows(target.pipeline, target.chain, [link.window], RunFacts())
        except ForebayError as error:
            self.watch.warned(f"window {link.window} is not judged: {error}")


def _due(target: LineTarget) -> datetime:
    """Where what is due begins. A line begins with the first window that has rows."""
    due, dataset = target.due_from(), target.pipeline.dataset
    if due is not None:
        return due
    due = dataset.start
    while _is_empty(target, due):
        due = dataset.grid.at(due).end
    return due


def _is_empty(target: LineTarget, instant: datetime) -> bool:
    """Whether a line that is not begun has planned this window, without a row."""
    plan = target.ledger.latest_plan(target.pipeline.dataset.grid.at(instant).key)
    return plan is not None and plan.is_empty and not target.chain.is_begun()


def _plan(target: LineTarget, window: Window) -> WindowPlan:
    """The plan of the window that goes on now, unless another job is at work.

    Raises:
        LineBusyError: when one is; the streams of a window that goes on stay what they were.
        ForebayError: as `open_window`.
    """
    pipeline, sources = target.pipeline, target.project.sources
    holder = living_holder(target.home, pipeline.name, target.line)
    job = find_job(target.home, holder)
    if holder and (job is None or all(each.key != window.key for each in job.windows)):
        raise LineBusyError(f"job {holder} trains the line")
    open_plan = target.ledger.latest_plan(window.key)
    if holder and not (open_plan and is_declared(open_plan, pipeline, sources)):
        raise LineBusyError(
            f"window {window.key} goes on with the streams that were declared when it began; the "
            f"next one has those of now (`{of_line(target.chain, 'cancel')}` starts it over)"
        )
    return open_window(target.ledger, window, pipeline, sources)


def _asked(target: LineTarget) -> str:
    """Why the line is not to be followed for now, for people; empty where it is."""
    for pause in target.chain.pauses():
        why = f" ({pause.why})" if pause.why else ""
        if pause.asked_by == BY_PEOPLE:
            return f"paused{why}, until `{of_line(target.chain, 'jobs resume')}`"
        return f"giving way to other work on the line{why}"
    return ""
