"""Runs whose supervisors follow a script, on a stopped clock, over days of two sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from forebay.datatasks.planning.planner import PlanReport
from forebay.datatasks.plans.plan import WindowPlan
from forebay.datatasks.sources.memory.source import MEMORY
from forebay.executors.evaluation.run_summary import Summary
from forebay.executors.job.measures import Progress
from forebay.executors.job.request import JobStatus, State
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.run import Run, Watch
from forebay.executors.stages.target import LineTarget
from support.model_lines import export, keep_checkpoint, record_link
from support.scripted_supervisor import (
    Script,
    ScriptedSupervisor,
    ScriptedSupervisors,
    scripted_supervisors,
)
from support.stages import Stages, noon, stages, table

FIRST, SECOND, THIRD = "2026-03-01", "2026-03-02", "2026-03-03"
MODEL = {"kind": "count"}


@dataclass
class Clock:
    """The run's time. It stands, but for pauses: each is as long as asked, then a step is done."""

    now: float = 100.0
    steps: list[Callable[[], None]] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def perf_counter(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        assert self.steps, "nothing more happens, and the run goes on"
        self.steps.pop(0)()


@dataclass
class Told:
    planned: list[tuple[PlanReport, list[tuple[str, int]]]] = field(default_factory=list)
    submitted: list[str] = field(default_factory=list)
    progress: list[tuple[Progress, JobStatus]] = field(default_factory=list)
    away: list[str] = field(default_factory=list)

    @property
    def watch(self) -> Watch:
        return Watch(
            planned=lambda report, todo: self.planned.append(
                (report, [(plan.window, plan.generation) for plan in todo])
            ),
            submitted=self.submitted.append,
            progress=lambda progress, status: self.progress.append((progress, status)),
            away=lambda error: self.away.append(str(error)),
        )


@dataclass
class Runs:
    stages: Stages
    clock: Clock
    supervisors: ScriptedSupervisors
    told: Told = field(default_factory=Told)

    @property
    def chain(self) -> ModelChain:
        return ModelChain(self.stages.home, "ads")

    def run(
        self,
        first: str = FIRST,
        last: str | None = None,
        *scripts: Script,
        line: str = "main",
        **asked: Any,
    ) -> Summary:
        """Starts as many supervisors as there are scripts."""
        target = LineTarget(self.stages.project, self.stages.pipeline, self.stages.home, line)
        self.supervisors.scripts = list(scripts)
        self.told = Told()
        summary = Run(target, self.told.watch).execute(first, last or first, **asked)
        assert self.supervisors.scripts == [], "as many supervisors as expected"
        return summary

    def plan(self, *days: int) -> None:
        for day in days:
            for source in self.stages.sources:
                self.stages.source(day, source)
            self.stages.sink(day)

    def train(self, plan: WindowPlan, line: str = "main", **more: Any) -> Link:
        """What a trainer leaves behind of a plan: all of its rows are learnt."""
        chain = ModelChain(self.stages.home, "ads", line)
        parent = chain.before(plan.as_window)
        link = record_link(
            chain,
            plan.window,
            {name: each.rows or 0 for name, each in plan.sources.items()},
            parent=parent.window if parent else None,
            generation=plan.generation,
            **{
                "model_fingerprint": model_fingerprint_of(
                    self.stages.pipeline, self.stages.sources
                ),
                **more,
            },
        )
        return keep_checkpoint(chain, link)

    def trained(self, day: int, **more: Any) -> Link:
        self.plan(day)
        plan = self.stages.ledger.latest_plan(self.stages.window(day).key)
        assert plan is not None
        return self.train(plan, **more)

    def trains(self, supervisor: ScriptedSupervisor, count: int | None = None) -> None:
        """Train what is asked for, or so many windows of it; the last one gets a model."""
        for window in supervisor.request.windows[:count]:
            plan = self.stages.ledger.plan(window.key, window.generation)
            link = self.train(plan, supervisor.request.line)
        if count is None:
            export(ModelChain(self.stages.home, "ads", supervisor.request.line), link)

    def succeeds(self, supervisor: ScriptedSupervisor) -> None:
        supervisor.run()
        self.trains(supervisor)
        supervisor.end("succeeded")

    def ends(self, state: State, count: int = 0, **more: Any) -> Script:
        return self._script(count, lambda supervisor: supervisor.end(state, **more))

    def dies(self, count: int = 0) -> Script:
        return self._script(count, ScriptedSupervisor.die)

    def _script(self, count: int, then: Script) -> Script:
        def script(supervisor: ScriptedSupervisor) -> None:
            supervisor.run()
            self.trains(supervisor, count)
            then(supervisor)

        return script

    def asked(self) -> list[tuple[str, int]]:
        windows = self.supervisors.started[-1].request.windows
        return [(each.key, each.generation) for each in windows]

    def serving(self) -> tuple[str, int] | None:
        found = self.chain.published()
        return (found.window, found.generation) if found else None


@contextmanager
def scripted_runs(root: Path, monkeypatch: pytest.MonkeyPatch, **declared: Any) -> Iterator[Runs]:
    clock = Clock()
    monkeypatch.setattr("forebay.executors.run.time", clock)
    with (
        stages(root, ("a", "b"), model=MODEL, **declared) as found,
        scripted_supervisors(monkeypatch) as supervisors,
    ):
        MEMORY["a"] = table([noon(day) for day in range(-2, 5) for _ in range(2)])
        MEMORY["b"] = table([noon(day) for day in range(-2, 5)])
        yield Runs(found, clock, supervisors)


def reports(supervisor: ScriptedSupervisor, **told: Any) -> None:
    supervisor.folder.report(Progress(**told))
