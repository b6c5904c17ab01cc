"""What people do to a line, as its commands do it, in this process."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, select

from forebay.datatasks.planning.planner import plan_windows
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.plan import WindowPlan
from forebay.errors import ForebayError, UsageError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.retention.home_garbage import remove_garbage
from forebay.executors.run import Run
from forebay.executors.stages.evaluate import evaluate_window
from forebay.executors.stages.plan import record_window, time_window
from forebay.executors.stages.publish import publish_window
from forebay.executors.stages.source import SourceStage
from forebay.executors.stages.submit import submit_window
from forebay.executors.stages.target import LineTarget, StageTarget
from forebay.executors.stages.turn import PreviousRun
from forebay.executors.stages.why import Why, why_window
from forebay.home.database.open import database_of
from forebay.home.database.tables import borders, plans
from forebay.home.home_check import HomeCheck
from forebay.home.paths import Home
from support.line_sequences.declared import PIPELINE, Declared

LINES = ("main", "b")
Facts = dict[str, Any]
_RUN_OPTIONS = inspect.signature(Run.execute).parameters.keys()


@dataclass(frozen=True)
class Ended:
    """How an operation ended. refusal: the error's class and text; code: its exit code."""

    answer: Any = None
    refusal: str = ""
    code: int = 0

    @property
    def notes(self) -> list[str]:
        return list(self.answer.get("notes", ())) if isinstance(self.answer, dict) else []


def attempt(work: Callable[[], Any]) -> Ended:
    """Do this; a `ForebayError` is a refusal, anything else is not caught."""
    try:
        return Ended(work())
    except ForebayError as error:
        return Ended(refusal=f"{type(error).__name__}: {error}", code=error.exit_code)


@dataclass
class Operations:
    """Of one declaration and its home. begun_anew: lines of which all was forgotten."""

    declared: Declared
    home: Home
    begun_anew: set[str] = field(default_factory=set)
    _claims: int = field(default=0)

    def target(self, line: str) -> LineTarget:
        project = self.declared.project()
        return LineTarget(project, project.pipelines[PIPELINE], self.home, line)

    def at(self, window: str, line: str) -> StageTarget:
        from forebay.datatasks.window_range import parse_window_or_warm_start

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
            clock=_now,
            check_trained=True,
        )
        return {"notes": report.notes}

    def run(
        self, first: str, last: str, line: str, *, reprocess: bool = False, **more: Any
    ) -> dict[str, Any]:
        summary = Run(self.target(line)).execute(first, last, reprocess=reprocess, **more)
        return {name: summary[name] for name in ("trained_windows", "notes", "rows_agree", "seen")}

    def stages(
        self, window: str, line: str, *, again: bool, submits: bool = True
    ) -> dict[str, Any]:
        """One run of the DAG, or its first tasks; how its submission ended."""
        self._claims += 1
        claim = f"run-{self._claims}"
        at = self.at(window, line)
        timed = time_window(at, again=again)
        if timed.state == "trained" and at.is_trained(window, timed.generation or 0):
            return {"state": "trained before"}
        for source in at.pipeline.use_names:
            found = SourceStage(at, source, _now).list_window(f"{claim}#0")
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

    def begin_anew(self, line: str) -> None:
        """`forebay forget --all`."""
        self.target(line).chain.begin_anew(forget_plans=True)
        self.begun_anew.add(line)

    def collect(self) -> None:
        remove_garbage(self.home, self.declared.project())

    def why(self, window: str, line: str) -> Why:
        return why_window(self.at(window, line), _now)

    def follow(self, command: str) -> dict[str, Any]:
        """A command that `why` has printed."""
        program, name, _, *words = shlex.split(command)
        assert program == "forebay"
        options, left = _options(words)
        line = str(options.pop("line", "main"))
        if name == "run":
            first, last = str(options.pop("from")), str(options.pop("to"))
            reprocess = bool(options.pop("reprocess", False))
            more = {each.replace("-", "_"): value for each, value in options.items()}
            assert more.keys() <= _RUN_OPTIONS, command
            return self.run(first, last, line, reprocess=reprocess, **more)
        assert name == "forget", command
        assert (len(left), tuple(options)) in {(1, ()), (0, ("all",))}, command
        if left:
            self.forget(left[0], line)
        else:
            self.begin_anew(line)
        return {}

    def look(self) -> Facts:
        database = database_of(self.home)
        database.prepare()
        return database.read(_rows) | {"lines": {line: self._line(line) for line in LINES}}

    def faults(self) -> list[str]:
        return [str(fault) for fault in HomeCheck(self.home).faults()]

    def _line(self, line: str) -> Facts:
        chain, ledger = ModelChain(self.home, PIPELINE, line), Ledger(self.home, PIPELINE, line)
        order = chain.windows()
        planned = {window: ledger.latest_plan(window) for window in ledger.windows()}
        return {
            "order": order,
            "newest": {name: link.generation for name, link in chain.newest_of(order).items()},
            "links": [
                {
                    **link.model_dump(mode="json", exclude={"files"}),
                    "trained": {name: link.trained(name).model_dump() for name in link.seen},
                }
                for link in chain.links()
            ],
            "planned": {window: plan.generation for window, plan in planned.items() if plan},
            "stale": sorted(chain.stale_reasons()),
        }


def _options(words: list[str]) -> tuple[dict[str, Any], list[str]]:
    options: dict[str, Any] = {}
    left: list[str] = []
    while words:
        word = words.pop(0)
        if not word.startswith("--"):
            left.append(word)
        elif words and not words[0].startswith("--"):
            options[word[2:]] = words.pop(0)
        else:
            options[word[2:]] = True
    return options, left


def _rows(rows: Connection) -> Facts:
    columns = borders.c.topic, borders.c.partition, borders.c.instant, borders.c.offset
    return {
        "borders": [tuple(each) for each in rows.execute(select(*columns))],
        "plans": [
            WindowPlan.of_document(each, "a plan").model_dump(mode="json")
            for each in rows.scalars(select(plans.c.document))
        ],
    }


def _now() -> datetime:
    return datetime.now(UTC)
