"""The job that trains one window: submitted or attached to, in turn and for one generation."""

from __future__ import annotations

import sys

from forebay.config.specs.jobs import INLINE
from forebay.config.specs.windows import Window
from forebay.datatasks.planning.planner import plan_windows
from forebay.datatasks.plans.plan import WindowPlan
from forebay.errors import ConfigError, LineBusyError, UsageError
from forebay.executors.job.host import SUPERVISOR_ARGUMENTS
from forebay.executors.job.stored_jobs import BEATS_SECONDS, find_job, is_silent
from forebay.executors.job.submit import attach, submit
from forebay.executors.model_line.adjoining import require_all_adjoining
from forebay.executors.model_line.lease import living_holder
from forebay.executors.model_line.start import (
    drop_unused_warm_start,
    gap_before,
    may_begin_with,
    require_checkpoint,
    require_compatible,
    stale_warnings,
    warm_start_of,
)
from forebay.executors.right_of_way import following_job
from forebay.executors.stages.claims import Claims
from forebay.executors.stages.lost_jobs import end_trained_jobs
from forebay.executors.stages.results import SubmitResult
from forebay.executors.stages.target import StageTarget
from forebay.executors.stages.turn import Line, PreviousRun, Situation, Turn, decide
from forebay.home.job_id import window_job_id
from forebay.system.clock import utc_now

# Airflow asks again within a minute.
_ASKED_SECONDS = 120.0


def submit_window(
    target: StageTarget, *, claim: str, again: bool, previous: PreviousRun, run: str | None = None
) -> SubmitResult:
    """Submit the job of one window, or attach to it, once it is the window's turn.

    Killed at any point and called again with the same claim, it decides the same generation.

    claim: names one request. The first call that may start decides the generation; later calls with
        it attach to that one's job, or start it again from its newest seal.
    again: train a window that is trained already once more, from the same tasks.
    run: a scheduler's run, which owns the job from then on.

    Raises:
        ConfigError: for a gap in the line, a previous window that will not be trained by waiting,
            a declaration that no longer fits the line, or a window without a plan.
        NotReadyError: for a window without rows that would be the first of the line.
        ForebayError: when the job cannot be started.
    """
    if target.pipeline.job.plane == INLINE:
        raise ConfigError(
            f"pipeline {target.pipeline.name}: a job on the plane inline ends with the process "
            "that submits it, which Airflow ends: set job.plane to local, or use `forebay run`"
        )
    return _Submission(target, claim, run, again=again).submit(previous)


class _Submission:
    """One call. The methods are in the order in which `submit` calls them."""

    def __init__(self, target: StageTarget, claim: str, run: str | None, *, again: bool) -> None:
        self.target = target
        self.spec, self.window = target.pipeline, target.window
        self.ledger, self.chain = target.ledger, target.chain
        self._claims = Claims(self.ledger, self.window.key)
        self._claim = claim
        self._run = run
        self._again = again
        self._warnings: list[str] = []

    def submit(self, previous: PreviousRun) -> SubmitResult:
        planned = self._planned_generation()
        claimed = self._claims.generation(self._claim)
        if claimed is None and not self._again:
            claimed = planned  # a job or model of the newest plan will do
        if claimed is not None and (found := self._trained_or_running(claimed)) is not None:
            return found
        require_compatible(self.chain, self.spec, self.target.project.sources)
        turn = self._turn(previous, planned)
        turn.require()
        if turn.action == "wait":
            self._ask_way()
            return self._waiting(turn.reason)
        kept = self.spec.job.checkpoints_kept
        require_checkpoint(self.chain, self.chain.before(self.window), kept)
        self._warnings = stale_warnings(
            self.chain,
            [self.window],
            refused=self.spec.schedule.on_stale == "refuse",
            otherwise=" (schedule.on_stale: refuse)",
        )
        planned = self._planned_generation()
        renewed = self._again and self.target.is_trained(self.window.key, planned)
        generation = self._claims.decide(self._claim, renewed=planned if renewed else None)
        return self._trained_or_running(generation) or self._start(generation)

    def _planned_generation(self) -> int:
        plan = self.ledger.latest_plan(self.window.key)
        if plan is None:
            raise UsageError(
                f"window {self.window.key} of pipeline {self.spec.name!r} has no plan: its sources "
                "and its sink have to run first (clear the whole run)"
            )
        return plan.generation

    def _trained_or_running(self, generation: int) -> SubmitResult | None:
        """The answer if nothing has to be started; None if a job has to be."""
        if self.target.is_trained(self.window.key, generation):
            end_trained_jobs(self.target)
            return self._trained(generation)
        job = find_job(self.target.home, self._job_id(generation))
        if job is None or not job.status.is_active:
            return None
        if not job.is_here and is_silent(job, BEATS_SECONDS):
            return None  # the submission decides, after a longer look
        handle = attach(self.target.home, job.job_id, self._run)
        return self._submitted(generation, handle.epoch)

    def _turn(self, previous: PreviousRun, planned: int) -> Turn:
        grid, begin = self.spec.dataset.grid, self.spec.dataset.start
        before = grid.before(self.window).key
        if self.window.start <= grid.at(begin).start:
            before, previous = "", PreviousRun.NONE  # a run before the dataset's start is ignored
        link, plan = self.chain.newest(before), self.ledger.latest_plan(before)
        holder = living_holder(self.target.home, self.spec.name, self.target.line)
        job = find_job(self.target.home, holder)
        line = Line(
            name=self.target.line,
            trained=link.generation if link else None,
            planned=plan.generation if plan else None,
            gap=gap_before(self.chain, grid, self.window),
            holder="" if holder == self._job_id(planned) else holder,
            coming=job is not None and job.generation(before) is not None,
            may_begin=may_begin_with(self.chain, grid, self.window),
        )
        return decide(Situation(self.window.key, before, previous, line=line))

    def _ask_way(self) -> None:
        """Who trains a window that goes on gives way to an earlier one, for as long as it waits."""
        job = following_job(self.chain)
        windows = () if job is None else job.windows
        grid = self.spec.dataset.grid
        if windows and all(self.window < grid.parse(each.key) for each in windows):
            why = f"window {self.window.key} is to be trained"
            self.chain.pause(self._claim, why, _ASKED_SECONDS)

    def _start(self, generation: int) -> SubmitResult:
        plans = [self.ledger.plan(self.window.key, generation)]
        warm = warm_start_of(self.spec, self.chain, self.window)
        if warm is not None and self.ledger.trained(warm.key) is None:  # or it was forgotten since
            plans.insert(0, self._warm_start_plan(warm))
        self.target.require_rows(plans)
        require_all_adjoining(self.chain, self.target.project.sources, plans)
        drop_unused_warm_start(self.chain, warm)
        request = self.target.job_request(self._job_id(generation), plans, publishes=False)
        python = self.spec.job.roles.data.runtime.python or sys.executable
        try:
            command = (python, *SUPERVISOR_ARGUMENTS)
            handle = submit(self.target.home, request, command, self._run)
            self.chain.resume(self._claim)
        except LineBusyError as error:  # another job took it after the check
            return self._waiting(str(error))
        return self._submitted(generation, handle.epoch)

    def _warm_start_plan(self, warm: Window) -> WindowPlan:
        """The newest recorded plan of the line's warm start, otherwise one made now.

        Planning the window that looks like the line's first also plans the warm start. Which
        window the line begins with is only certain at training, so the plan may be missing.
        """
        recorded = self.ledger.latest_plan(warm.key)
        if recorded is not None:
            return recorded
        project = self.target.project
        report = plan_windows(
            project.root,
            self.spec,
            project.sources,
            self.ledger,
            [],
            warm_start=warm,
            clock=utc_now,
        )
        return report.plans[0]

    def _job_id(self, generation: int) -> str:
        return window_job_id(self.spec.name, self.target.line, self.window.key, generation)

    def _submitted(self, generation: int, epoch: int) -> SubmitResult:
        return SubmitResult(
            state="submitted",
            window=self.window.key,
            job_id=self._job_id(generation),
            epoch=epoch,
            generation=generation,
            warnings=self._warnings,
        )

    def _trained(self, generation: int) -> SubmitResult:
        return SubmitResult(
            state="trained",
            window=self.window.key,
            reason=f"generation {generation} of window {self.window.key} is trained",
            job_id=self._job_id(generation),
            generation=generation,
        )

    def _waiting(self, reason: str) -> SubmitResult:
        return SubmitResult(state="waiting", window=self.window.key, reason=reason)
