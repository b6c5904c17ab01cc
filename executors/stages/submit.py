"""The job that trains one window: whose turn it is, in which generation, and where it runs."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

from forebay.config.load import Project
from forebay.config.pipelines import PipelineSpec
from forebay.config.windows import Window
from forebay.datatasks.ledger import Ledger
from forebay.errors import LineBusyError, UsageError
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.handle import JobRequest, attach, submit
from forebay.executors.job.job_id import window_job_id
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.lease import line_holder
from forebay.executors.model_line.start import gap_before, require_compatible, warm_start_of
from forebay.executors.stages.claims import Claims
from forebay.executors.stages.results import SubmitResult
from forebay.executors.stages.training_windows import is_linked, window_request
from forebay.executors.stages.turn import Line, PreviousRun, Situation, Turn, decide
from forebay.executors.stages.warm_start import warm_start_plan
from forebay.home.paths import Home
from forebay.system.locks import locked

SUPERVISOR_ARGUMENTS = ("-P", "-m", "forebay.executors.supervisor")
CLAIMS_LOCK = ".claims.lock"
# A decision under the lock copies a window's manifests at most.
CLAIMS_LOCK_SECONDS = 60.0


def submit_window(
    project: Project,
    spec: PipelineSpec,
    home: Home,
    line: str,
    window: Window,
    *,
    claim: str,
    again: bool,
    previous: PreviousRun,
) -> SubmitResult:
    """Submit the job of one window, or attach to it, once it is the window's turn.

    Killed at any point and called again with the same claim, it comes to the same generation.

    Args:
        project: where sources are declared.
        spec: the pipeline.
        home: where state lies.
        line: the model line.
        window: what to train; it is planned already.
        claim: names one asking. The first call that may go decides the generation; later calls
            with it attach to that one's job, or start it again from its newest seal.
        again: train a window that is trained already once more, from the same tasks.
        previous: what the caller knows of the run of the window before.

    Raises:
        ConfigError: for a gap in the line, a window before that cannot become trained by waiting,
            a declaration that no longer fits the line, or a window without a plan.
        ForebayError: when the job cannot be started.
    """
    return _Submission(project, spec, home, line, window).submit(
        claim, again=again, previous=previous
    )


@dataclass
class _Submission:
    """One call."""

    project: Project
    spec: PipelineSpec
    home: Home
    line: str
    window: Window
    ledger: Ledger = field(init=False)
    chain: ModelChain = field(init=False)

    def __post_init__(self) -> None:
        """Nothing is read or created yet."""
        self.ledger = Ledger(self.home, self.spec.name)
        self.chain = ModelChain(self.home, self.spec.name, self.line)
        self._claims = Claims(self.ledger, self.window.key)

    def submit(self, claim: str, *, again: bool, previous: PreviousRun) -> SubmitResult:
        """See `submit_window`."""
        planned = self._planned()
        claimed = self._claims.generation(claim)
        # Without a wish for more, what is there is as good as what was claimed.
        standing = claimed if claimed is not None or again else planned
        if standing is not None and self._is_linked(standing):
            return self._trained(standing)
        if standing is not None and self._runs(standing):
            return self._attached(standing)
        require_compatible(self.chain, self.spec, self.project.sources)
        turn = self._turn(previous, planned)
        turn.require()
        if turn.action == "wait":
            return self._waiting(turn.reason)
        with locked(self.ledger.folder / CLAIMS_LOCK, CLAIMS_LOCK_SECONDS):
            generation = self._decided(claim, again=again)
        return self._started(generation)

    def _planned(self) -> int:
        plan = self.ledger.latest_plan(self.window.key)
        if plan is None:
            raise UsageError(
                f"window {self.window.key} of pipeline {self.spec.name!r} has no plan: its sources "
                "and its sink have to run first (clear the whole run)"
            )
        return plan.generation

    def _is_linked(self, generation: int) -> bool:
        return is_linked(self.ledger, self.chain, self.window.key, generation)

    def _runs(self, generation: int) -> bool:
        status = JobFolder(self.home.job(self._job_id(generation))).status()
        return status is not None and status.is_active

    def _turn(self, previous: PreviousRun, planned: int) -> Turn:
        grid, begin = self.spec.dataset.grid, self.spec.dataset.start
        before = ""
        if self.window.start > grid.at(begin).start:
            before = grid.before(self.window).key
        link = self.chain.newest(before) if before else None
        plan = self.ledger.latest_plan(before) if before else None
        holder = line_holder(self.home, self.spec.name, self.line)
        line = Line(
            name=self.line,
            trained=link.generation if link else None,
            planned=plan.generation if plan else None,
            gap=gap_before(self.chain, grid, self.window.key),
            holder="" if holder == self._job_id(planned) else holder,
        )
        return decide(Situation(self.window.key, before, previous, line=line))

    def _decided(self, claim: str, *, again: bool) -> int:
        """The claim's generation; decided and stored now where it has none."""
        claimed = self._claims.generation(claim)
        if claimed is not None:
            return claimed
        generation = self._planned()
        if again and self._is_linked(generation):
            # Killed between these two lines, the next call finds a plan that nobody has trained.
            generation = self.ledger.replan(self.window.key).generation
        self._claims.record(claim, generation)
        return generation

    def _started(self, generation: int) -> SubmitResult:
        if self._is_linked(generation):
            return self._trained(generation)
        if self._runs(generation):
            return self._attached(generation)
        python = self.spec.job.roles.data.runtime.python or sys.executable
        supervisor = (python, *SUPERVISOR_ARGUMENTS)
        try:
            handle = submit(self.home, self._request(generation), supervisor)
        except LineBusyError as error:  # taken since the look at it
            return self._waiting(str(error))
        return self._submitted(generation, handle.epoch)

    def _request(self, generation: int) -> JobRequest:
        plans = [self.ledger.plan(self.window.key, generation)]
        warm = warm_start_of(self.spec, self.chain, self.window)
        if warm is not None and self.chain.newest(warm.key) is None:
            plans.insert(0, warm_start_plan(self.project, self.spec, self.ledger, warm))
        return JobRequest.of(
            self._job_id(generation),
            self.home.root,
            self.project.root,
            self.spec,
            self.project.sources,
            [window_request(plan) for plan in plans],
            line=self.line,
            publishes=False,
        )

    def _job_id(self, generation: int) -> str:
        return window_job_id(self.spec.name, self.line, self.window.key, generation)

    def _attached(self, generation: int) -> SubmitResult:
        return self._submitted(generation, attach(self.home, self._job_id(generation)).epoch)

    def _submitted(self, generation: int, epoch: int) -> SubmitResult:
        return SubmitResult(
            state="submitted",
            window=self.window.key,
            job_id=self._job_id(generation),
            epoch=epoch,
            generation=generation,
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
