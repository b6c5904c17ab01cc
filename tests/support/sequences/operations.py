"""What people do to a pipeline, as its commands do it; each is called in a child."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from forebay.config.load import Project
from forebay.datatasks.planning.planner import plan_windows
from forebay.errors import UsageError
from forebay.executors.retention.home_garbage import remove_garbage
from forebay.executors.run import Run
from forebay.executors.stages.evaluate import evaluate_window
from forebay.executors.stages.plan import record_window, time_window
from forebay.executors.stages.publish import publish_window
from forebay.executors.stages.source import SourceStage
from forebay.executors.stages.submit import submit_window
from forebay.executors.stages.target import LineTarget
from forebay.executors.stages.turn import PreviousRun
from forebay.home.paths import Home
from support.sequences.declared import PIPELINE
from support.sequences.home_facts import Facts, facts_of


@dataclass(frozen=True)
class Operations:
    """Of one project and its home."""

    project: Project
    home: Home

    def target(self, line: str = "main") -> LineTarget:
        return LineTarget(self.project, self.project.pipelines[PIPELINE], self.home, line)

    def look(self) -> Facts:
        """What the home says."""
        return facts_of(self.home)

    def plan(self, first: str, last: str) -> list[str]:
        """`forebay plan`; its notes."""
        target = self.target()
        report = plan_windows(
            self.project.root,
            target.pipeline,
            self.project.sources,
            target.ledger,
            target.pipeline.dataset.grid.between(first, last),
            warm_start=None,
            clock=lambda: datetime.now(UTC),
            check_trained=True,
        )
        return report.notes

    def run(self, first: str, last: str, line: str, *, reprocess: bool) -> dict[str, Any]:
        """`forebay run`; what it trained and its notes."""
        summary = Run(self.target(line)).execute(first, last, reprocess=reprocess, on_stale="train")
        return {name: summary[name] for name in ("trained_windows", "notes", "rows_agree")}

    def stages(self, window: str, line: str, claim: str, *, again: bool) -> dict[str, Any]:
        """One run of the DAG; how its submission ended."""
        target = self.target(line)
        at = target.at(target.pipeline.dataset.grid.parse(window))
        timed = time_window(at, again=again)
        if timed.state == "trained" and at.is_trained(window, timed.generation):
            return {"state": "trained before"}
        for source in at.pipeline.source_names:
            found = SourceStage(at, source, lambda: datetime.now(UTC)).list_window(f"{claim}#0")
            if found.state != "listed":
                return {"state": found.state}
        record_window(at, asked_by=f"{claim}#0", again=again)
        submit_window(at, claim=claim, again=again, previous=PreviousRun.DONE)
        ended = submit_window(at, claim=claim, again=again, previous=PreviousRun.DONE)
        if ended.state == "trained":
            evaluate_window(at)
            publish_window(at, ended.generation)
        return {"state": ended.state, "reason": ended.reason}

    def forget(self, window: str, line: str) -> None:
        """`forebay forget`."""
        if not self.target(line).ledger.forget(window):
            raise UsageError(f"the ledger has no window {window!r}: plan it")

    def collect(self) -> None:
        """`forebay gc`."""
        remove_garbage(self.home, self.project)
