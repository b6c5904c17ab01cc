"""What a command is about: a model line of a pipeline, or one window of it.

Light on purpose: a stage that reads no plans imports no Arrow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from forebay.config.load import Project, load_one
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.windows import Window, is_warm_start
from forebay.errors import DataError, NotReadyError
from forebay.executors.job.request import JobRequest, WindowRequest
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.commands import retrain_command
from forebay.home.database.format import open_home
from forebay.home.paths import Home
from forebay.system.clock import utc_now

if TYPE_CHECKING:
    from forebay.datatasks.plans.ledger import Ledger
    from forebay.datatasks.plans.plan import WindowPlan


@dataclass(frozen=True)
class LineTarget:
    """One model line of one pipeline: where it is declared, and where its state is stored."""

    project: Project
    pipeline: PipelineSpec
    home: Home
    line: str

    @classmethod
    def load(cls, config: Path, pipeline: str, line: str) -> LineTarget:
        """The line of a pipeline that a folder declares, with its state in FOREBAY_HOME.

        Raises:
            ConfigError: when the pipeline is not declared or has errors, or when FOREBAY_HOME was
                written by another version.
        """
        project = load_one(config, pipeline)
        target = LineTarget(project, project.pipeline(pipeline), open_home(), line)
        if not project.pipeline_files[pipeline].automatic:
            return target
        begin = target.chain.first()
        kept = project.keep_rivals(pipeline, [] if begin is None else begin.variants)
        return replace(target, pipeline=kept)

    @property
    def kinds(self) -> set[str]:
        return {self.project.source(name).kind for name in self.pipeline.source_names}

    @property
    def ledger(self) -> Ledger:
        from forebay.datatasks.plans.ledger import Ledger  # Arrow: only where it is needed

        return Ledger(self.home, self.pipeline.name, self.line)

    def changed_notes(self, plans: Sequence[WindowPlan]) -> list[str]:
        """Notes on trained windows whose data is not what it was when they were planned."""
        from forebay.datatasks.look.changes import changes_since

        project = self.project
        found = changes_since(project.root, self.pipeline, project.sources, self.ledger, plans)
        return [
            f"window {key}: {'; '.join(words)} (to train it on them: "
            f"`{retrain_command(self.chain, key, key)}`)"
            for key, words in found.items()
        ]

    def require_rows(self, plans: Sequence[WindowPlan]) -> None:
        """As `require_beginning`, but nobody is told to wait for rows whose times no window has.

        Raises:
            NotReadyError: when the first window has no rows.
            DataError: when it has none because of such times.
        """
        from forebay.datatasks.look.lags import in_vain, lags_of
        from forebay.executors.model_line.start import require_beginning

        try:
            require_beginning(self.chain, plans)
        except NotReadyError as error:
            lags = lags_of(self.project.root, self.pipeline, self.project.sources, utc_now())
            if not in_vain(lags):
                raise
            wrong = "; ".join(each.text for each in lags if each.wrong_time)
            begins = str(error).partition(" What to do: ")[0]
            raise DataError(f"{begins} {wrong}: {in_vain(lags)}") from error

    @property
    def chain(self) -> ModelChain:
        return ModelChain(self.home, self.pipeline.name, self.line)

    def due_from(self) -> datetime | None:
        """Where what is due begins; None where the line is not begun.

        After the last trained window, or at the first that is no longer trained from its plan (as
        after `forget`).
        """
        keys = [key for key in self.chain.windows() if not is_warm_start(key)]
        done = self.ledger.trained_plans(keys)
        again = next((key for key in keys if key not in done), "")
        link = self.chain.newest(again) if again else None
        return self.chain.trained_until() if link is None else link.start

    def at(self, window: Window) -> StageTarget:
        return StageTarget(self.project, self.pipeline, self.home, self.line, window)

    def is_trained(self, window: str, generation: int) -> bool:
        return self.chain.is_trained(window, generation)

    def job_request(
        self,
        job_id: str,
        plans: Sequence[WindowPlan],
        *,
        reprocess: bool = False,
        publishes: bool = True,
    ) -> JobRequest:
        return JobRequest.of(
            job_id,
            self.home.root,
            self.project.root,
            self.pipeline,
            self.project.sources,
            [
                WindowRequest(
                    key=plan.window,
                    generation=plan.generation,
                    start=plan.start,
                    end=plan.end,
                    warm_start=is_warm_start(plan.window),
                )
                for plan in plans
            ],
            line=self.line,
            reprocess=reprocess,
            publishes=publishes,
            declared=self.project.declared(self.pipeline.name),
        )


@dataclass(frozen=True)
class StageTarget(LineTarget):
    window: Window

    @property
    def key(self) -> str:
        return self.window.key
