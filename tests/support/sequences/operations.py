"""What people do to a pipeline, as its commands do it, and what its home says then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, select

from forebay.config.load import Project
from forebay.datatasks.planning.planner import plan_windows
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.plan import WindowPlan
from forebay.datatasks.window_range import parse_window_or_warm_start
from forebay.errors import ForebayError, UsageError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.executors.retention.home_garbage import remove_garbage
from forebay.executors.run import Run
from forebay.executors.stages.evaluate import evaluate_window
from forebay.executors.stages.plan import record_window, time_window
from forebay.executors.stages.publish import publish_window
from forebay.executors.stages.source import SourceStage
from forebay.executors.stages.submit import submit_window
from forebay.executors.stages.target import LineTarget, StageTarget
from forebay.executors.stages.turn import PreviousRun
from forebay.executors.window_files.dead_letters import read_letters
from forebay.home.database.open import database_of
from forebay.home.database.tables import borders, plans
from forebay.home.home_check import HomeCheck
from forebay.home.paths import Home
from forebay.home.store.open import store_of
from support.sequences.declared import PIPELINE

LINES = ("main", "b")
Facts = dict[str, Any]


@dataclass(frozen=True)
class Ended:
    """How an operation ended: its answer, or why it was refused; neither when it was killed.

    refusal: the error's class and text. code: its exit code.
    """

    answer: Any = None
    refusal: str = ""
    code: int = 0
    killed: bool = False


def attempt(work: Callable[[], Any]) -> Ended:
    """Do this; a `ForebayError` is a refusal, anything else is not caught."""
    try:
        return Ended(work())
    except ForebayError as error:
        return Ended(refusal=f"{type(error).__name__}: {error}", code=error.exit_code)


@dataclass
class Operations:
    """Of one home. project: what is declared now."""

    project: Callable[[], Project]
    home: Home

    def target(self, line: str) -> LineTarget:
        project = self.project()
        return LineTarget(project, project.pipelines[PIPELINE], self.home, line)

    def at(self, window: str, line: str) -> StageTarget:
        target = self.target(line)
        return target.at(parse_window_or_warm_start(target.pipeline, window))

    def plan(self, first: str, last: str) -> dict[str, Any]:
        target = self.target("main")
        report = plan_windows(
            target.project.root,
            target.pipeline,
            target.project.sources,
            target.ledger,
            target.pipeline.dataset.grid.between(first, last),
            warm_start=None,
            clock=now,
        )
        trained = [each for each in report.plans if target.is_trained(each.window, each.generation)]
        return {"notes": [*report.notes, *target.changed_notes(trained)]}

    def run(
        self, first: str, last: str, line: str, *, reprocess: bool = False, **more: Any
    ) -> dict[str, Any]:
        summary = Run(self.target(line)).execute(first, last, reprocess=reprocess, **more)
        document = summary.document()
        return {name: document[name] for name in ("trained_windows", "notes", "rows_agree", "seen")}

    def stages(
        self, window: str, line: str, claim: str, *, again: bool, submits: bool = True
    ) -> dict[str, Any]:
        """One run of the DAG, or its first tasks; how its submission ended."""
        at = self.at(window, line)
        timed = time_window(at, again=again)
        if timed.state == "trained" and at.is_trained(window, timed.generation or 0):
            return {"state": "trained before"}
        for source in at.pipeline.use_names:
            found = SourceStage(at, source, now).list_window(f"{claim}#0")
            if found.state != "listed":
                return {"state": found.state}
        sunk = record_window(at, asked_by=f"{claim}#0", again=again)
        if not submits:
            return {"state": "sunk", "notes": sunk.notes}
        submit_window(at, claim=claim, again=again, previous=PreviousRun.DONE)
        ended = submit_window(at, claim=claim, again=again, previous=PreviousRun.DONE)
        if ended.state == "trained":
            evaluate_window(at)
            publish_window(at, ended.generation)
        return {"state": ended.state, "reason": ended.reason, "notes": sunk.notes}

    def forget(self, window: str, line: str) -> None:
        if not self.target(line).ledger.forget(window):
            raise UsageError(f"line {line!r} has no plan for {window!r}")

    def collect(self) -> None:
        """`forebay gc`."""
        remove_garbage(self.home, self.project())

    def look(self) -> Facts:
        database = database_of(self.home)
        database.prepare()
        return database.read(_rows) | {"lines": {line: self.of_line(line) for line in LINES}}

    def faults(self) -> list[str]:
        return [str(fault) for fault in HomeCheck(self.home).faults()]

    def of_line(self, line: str) -> Facts:
        chain, ledger = ModelChain(self.home, PIPELINE, line), Ledger(self.home, PIPELINE, line)
        order = chain.windows()
        planned = {window: ledger.latest_plan(window) for window in ledger.windows()}
        return {
            "order": order,
            "newest": {name: link.generation for name, link in chain.newest_of(order).items()},
            "links": [self.of_link(link) for link in chain.links()],
            "planned": {window: plan.generation for window, plan in planned.items() if plan},
            "stale": sorted(chain.stale_reasons()),
        }

    def of_link(self, link: Link) -> Facts:
        return {
            **link.model_dump(mode="json", exclude={"files"}),
            "trained": {name: link.trained(name).model_dump() for name in link.seen},
        }


class KilledOperations(Operations):
    """Of a home in which anything may be half: more is looked at."""

    def look(self) -> Facts:
        return super().look() | {"faults": self.faults()}

    def of_line(self, line: str) -> Facts:
        ledger = Ledger(self.home, PIPELINE, line)
        done = {window: ledger.trained(window) for window in ledger.windows()}
        return super().of_line(line) | {"done": done}

    def of_link(self, link: Link) -> Facts:
        stored = link.files.get("dead_letters")
        letters = [] if stored is None else read_letters(store_of(self.home).tree(stored))
        places = [[each.source, each.location] for each in letters]
        return super().of_link(link) | {"letters": places}


def _rows(rows: Connection) -> Facts:
    columns = borders.c.topic, borders.c.partition, borders.c.instant, borders.c.offset
    return {
        "borders": [tuple(each) for each in rows.execute(select(*columns))],
        "plans": [
            WindowPlan.of_document(each, "a plan").model_dump(mode="json")
            for each in rows.scalars(select(plans.c.document))
        ],
    }


def now() -> datetime:
    return datetime.now(UTC)
