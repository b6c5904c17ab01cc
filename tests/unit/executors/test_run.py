"""What `forebay run` plans, has trained, follows to which end, publishes and concludes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.model_lines import export, keep_checkpoint, record_link
from support.scripted_supervisor import (
    Script,
    ScriptedSupervisor,
    ScriptedSupervisors,
    scripted_supervisors,
)
from support.stages import Stages, noon, pipeline, replanned, stages, table

from forebay.datatasks.planning import PlanReport
from forebay.datatasks.plans import WindowPlan
from forebay.datatasks.sources.memory.source import MEMORY
from forebay.errors import ConfigError, DataError, InfrastructureError, RowsLostError
from forebay.executors.evaluation.summary import Json
from forebay.executors.job.folder import PROGRESS_NAME
from forebay.executors.job.handle import GONE_SECONDS
from forebay.executors.job.progress import Progress
from forebay.executors.job.request import JobStatus, State
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link, ReadRows
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.run import POLL_SECONDS, SUPERVISOR_RESTARTS_MAX, Run, Watch
from forebay.executors.stages.target import LineTarget
from forebay.home.database import database_of
from forebay.home.paths import Home
from forebay.home.sqlite import FILE_NAME
from forebay.system.error_report import ErrorReport
from forebay.system.files import write_atomically

FIRST, SECOND, THIRD = "2026-03-01", "2026-03-02", "2026-03-03"
WARM_START = f"2026-02-27_{FIRST}"
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
    """What a run reported."""

    planned: list[tuple[PlanReport, list[tuple[str, int]]]] = field(default_factory=list)
    submitted: list[tuple[str, Path]] = field(default_factory=list)
    progress: list[tuple[Progress, JobStatus]] = field(default_factory=list)
    away: list[str] = field(default_factory=list)

    @property
    def watch(self) -> Watch:
        return Watch(
            lambda report, todo: self.planned.append(
                (report, [(plan.window, plan.generation) for plan in todo])
            ),
            lambda job_id, folder: self.submitted.append((job_id, folder)),
            lambda progress, status: self.progress.append((progress, status)),
            lambda error: self.away.append(str(error)),
        )


@dataclass
class Runs:
    """Runs over days of two sources: two rows and one row a day."""

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
        reprocess: bool = False,
        line: str = "main",
    ) -> Json:
        """Starts as many supervisors as there are scripts."""
        target = LineTarget(self.stages.project, self.stages.pipeline, self.stages.home, line)
        self.supervisors.scripts = list(scripts)
        self.told = Told()
        summary = Run(target, self.told.watch).execute(first, last or first, reprocess=reprocess)
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
        """A day that was planned and trained before."""
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
        """A job that ends so after so many windows."""

        def script(supervisor: ScriptedSupervisor) -> None:
            supervisor.run()
            self.trains(supervisor, count)
            supervisor.end(state, **more)

        return script

    def dies(self, count: int = 0) -> Script:
        """A supervisor that is killed after so many windows."""

        def script(supervisor: ScriptedSupervisor) -> None:
            supervisor.run()
            self.trains(supervisor, count)
            supervisor.die()

        return script

    def asked(self) -> list[tuple[str, int]]:
        """Windows of the only job, each with its generation."""
        (supervisor,) = self.supervisors.started
        return [(each.key, each.generation) for each in supervisor.request.windows]

    def serving(self) -> tuple[str, int] | None:
        found = self.chain.published()
        return (found.window, found.generation) if found else None


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("forebay.executors.run.time", made)
    return made


@pytest.fixture
def runs(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    with (
        stages(tmp_path, ("a", "b"), model=MODEL) as found,
        scripted_supervisors(monkeypatch) as supervisors,
    ):
        MEMORY["a"] = table([noon(day) for day in range(-2, 5) for _ in range(2)])
        MEMORY["b"] = table([noon(day) for day in range(-2, 5)])
        yield Runs(found, clock, supervisors)


def test_a_range_is_planned_trained_published_and_summed_up(runs: Runs) -> None:
    restarts = {"supervisor": 0, "driver": 0, "data": 1, "trainer": 0}

    def starts(supervisor: ScriptedSupervisor) -> None:
        supervisor.run()
        runs.clock.steps.append(lambda: trains(supervisor))

    def trains(supervisor: ScriptedSupervisor) -> None:
        runs.clock.now += 7
        reports(supervisor, window=THIRD, phases_seconds={"steps": 1.23456})
        runs.trains(supervisor)
        supervisor.end("succeeded", restarts=restarts)

    summary = runs.run(FIRST, THIRD, starts)
    job = f"ads.main.{FIRST}..{THIRD}"
    assert runs.told.submitted == [(job, runs.stages.home.job(job))]
    (request,) = [each.request for each in runs.supervisors.started]
    assert runs.asked() == [(FIRST, 1), (SECOND, 1), (THIRD, 1)]
    assert (request.publishes, request.reprocess, request.line) == (True, False, "main")
    ((report, todo),) = runs.told.planned
    assert todo == runs.asked()
    assert [each.window for each in report.plans] == [FIRST, SECOND, THIRD]
    assert summary["trained_windows"] == [FIRST, SECOND, THIRD]
    assert (summary["reused_windows"], summary["restarts"]) == ([], restarts)
    assert summary["storage_calls"] == report.storage_calls == 2
    assert summary["notes"] == []
    assert summary["rows_line"].endswith("(9 = 9 = 9 + 0)")
    assert summary["published"]["window"] == THIRD
    job_seconds = POLL_SECONDS + 7
    assert summary["phases_seconds"] == {
        "plan": 0,
        "job": job_seconds,
        "evaluate": 0,
        "total": job_seconds,
        "trainer.steps": 1.235,
    }
    assert runs.serving() == (THIRD, 1)


def test_a_job_may_end_before_its_trainer_has_reported(runs: Runs) -> None:
    summary = runs.run(FIRST, FIRST, runs.succeeds)
    assert list(summary["phases_seconds"]) == ["plan", "job", "evaluate", "total"]
    assert runs.told.progress == []


def test_what_is_trained_is_summed_up_without_a_job(runs: Runs) -> None:
    runs.trained(0)
    runs.trained(1)
    summary = runs.run(FIRST, SECOND)
    assert runs.supervisors.started == []
    assert not runs.stages.home.jobs.exists()
    assert (summary["trained_windows"], summary["reused_windows"]) == ([], [FIRST, SECOND])
    assert (summary["restarts"], summary["storage_calls"]) == ({}, 0)
    assert list(summary["phases_seconds"]) == ["plan", "evaluate", "total"]
    assert runs.stages.ledger.generations(FIRST) == [1]
    assert runs.told.planned[0][1] == []


def test_only_what_is_not_trained_is_asked_for(runs: Runs) -> None:
    runs.trained(0)
    runs.plan(1)
    summary = runs.run(FIRST, THIRD, runs.succeeds)
    assert runs.asked() == [(SECOND, 1), (THIRD, 1)]
    assert summary["trained_windows"] == [SECOND, THIRD]
    assert summary["reused_windows"] == [FIRST]


def test_each_line_trains_for_itself(runs: Runs) -> None:
    runs.trained(0)
    summary = runs.run(FIRST, FIRST, runs.succeeds, line="trial")
    assert runs.asked() == [(FIRST, 1)], "the same plan"
    assert summary["trained_windows"] == [FIRST]
    assert runs.told.submitted[0][0] == f"ads.trial.{FIRST}..{FIRST}"
    assert runs.serving() is None, "it publishes on its own line"


def test_a_line_begins_with_its_history(runs: Runs) -> None:
    runs.stages.pipeline = pipeline(("a", "b"), model=MODEL, train={"warm_start": "2026-02-27"})
    summary = runs.run(FIRST, SECOND, runs.succeeds)
    assert runs.asked() == [(WARM_START, 1), (FIRST, 1), (SECOND, 1)]
    assert summary["trained_windows"] == [WARM_START, FIRST, SECOND]
    assert summary["warm_start"]["window"] == WARM_START
    assert summary["rows_line"].endswith("(12 = 12 = 12 + 0)")
    summary = runs.run(THIRD, THIRD, runs.succeeds)
    assert (summary["trained_windows"], summary["reused_windows"]) == ([THIRD], [])


def test_windows_outside_the_dataset_are_refused(runs: Runs) -> None:
    with pytest.raises(ConfigError, match="before the dataset's start"):
        runs.run("2026-02-28", FIRST)
    assert runs.stages.ledger.windows() == []


def test_a_gap_is_refused_before_anything_is_submitted(runs: Runs) -> None:
    runs.trained(0)
    with pytest.raises(ConfigError, match=f"windows {SECOND} up to {THIRD} are not trained yet"):
        runs.run(THIRD)
    assert (runs.told.planned, runs.told.submitted) == ([], [])


def test_a_changed_model_is_refused_before_anything_is_submitted(runs: Runs) -> None:
    runs.trained(0, model_fingerprint="another")
    with pytest.raises(ConfigError, match="features, label or model changed"):
        runs.run(SECOND)
    assert (runs.told.planned, runs.told.submitted) == ([], [])


def test_a_reprocess_trains_what_is_trained_again_each_time(runs: Runs) -> None:
    runs.run(FIRST, SECOND, runs.succeeds)
    for generation in (2, 3):
        summary = runs.run(FIRST, SECOND, runs.succeeds, reprocess=True)
        request = runs.supervisors.started[-1].request
        assert (request.job_id, request.reprocess) == (
            f"ads.main.{FIRST}..{SECOND}.reprocess",
            True,
        )
        assert [each.generation for each in request.windows] == [generation] * 2
        assert summary["trained_windows"] == [FIRST, SECOND]
        assert runs.serving() == (SECOND, generation)


@pytest.mark.parametrize("end", ["failed", "cancelled", "lost"])
def test_a_reprocess_that_was_cut_off_goes_on_in_its_own_generations(
    runs: Runs, end: State
) -> None:
    runs.run(FIRST, SECOND, runs.succeeds)
    cut_off(runs, end)
    summary = runs.run(FIRST, SECOND, runs.succeeds, reprocess=True)
    request = runs.supervisors.started[-1].request
    assert [(each.key, each.generation) for each in request.windows] == [(SECOND, 2)]
    assert request.reprocess
    assert (summary["trained_windows"], summary["reused_windows"]) == ([SECOND], [FIRST])
    assert runs.stages.ledger.generations(FIRST) == [1, 2]


def cut_off(runs: Runs, end: State = "failed") -> None:
    """A reprocess that has trained the first of its two windows, in generation 2."""
    lost = [runs.dies(1), *[runs.dies()] * SUPERVISOR_RESTARTS_MAX]
    scripts = lost if end == "lost" else [runs.ends(end, 1)]
    with pytest.raises(InfrastructureError, match=f"the job ended as {end}"):
        runs.run(FIRST, SECOND, *scripts, reprocess=True)
    assert runs.stages.ledger.generations(SECOND)[-1] == 2


def test_a_reprocess_begins_anew_where_its_windows_were_planned_since(runs: Runs) -> None:
    runs.run(FIRST, SECOND, runs.succeeds)
    cut_off(runs)
    assert replanned(runs.stages.ledger, SECOND) == 3
    runs.run(FIRST, SECOND, runs.succeeds, reprocess=True)
    windows = runs.supervisors.started[-1].request.windows
    assert [(each.key, each.generation) for each in windows] == [(FIRST, 3), (SECOND, 4)]


def test_a_reprocess_begins_anew_where_its_windows_were_trained_since(runs: Runs) -> None:
    runs.run(FIRST, SECOND, runs.succeeds)
    cut_off(runs)
    runs.train(runs.stages.ledger.plan(SECOND, 2))
    runs.run(FIRST, SECOND, runs.succeeds, reprocess=True)
    windows = runs.supervisors.started[-1].request.windows
    assert [each.generation for each in windows] == [3, 3]


def test_a_reprocess_begins_anew_where_its_windows_were_forgotten_since(runs: Runs) -> None:
    runs.run(FIRST, SECOND, runs.succeeds)
    cut_off(runs)
    assert runs.stages.ledger.forget(SECOND)
    runs.run(FIRST, SECOND, runs.succeeds, reprocess=True)
    windows = runs.supervisors.started[-1].request.windows
    assert [each.generation for each in windows] == [3, 3]


@pytest.mark.parametrize("reprocess", [False, True])
def test_a_job_that_says_it_succeeded_is_not_believed(runs: Runs, *, reprocess: bool) -> None:
    if reprocess:
        runs.trained(0)
    with pytest.raises(RowsLostError, match=f"windows {FIRST} are not trained: run again"):
        runs.run(FIRST, FIRST, runs.ends("succeeded"), reprocess=reprocess)


def test_rows_that_do_not_agree_are_an_error(runs: Runs) -> None:
    runs.trained(0, read={"a": ReadRows(rows=3), "b": ReadRows(rows=1)})
    with pytest.raises(RowsLostError, match="source a: planned 2, served 3, trained 2, dead 0"):
        runs.run(FIRST)


def test_what_a_killed_job_left_unpublished_is_published(runs: Runs) -> None:
    export(runs.chain, runs.trained(0))
    assert runs.run(FIRST)["published"]["window"] == FIRST
    export(runs.chain, runs.trained(1))
    runs.trained(2)
    assert runs.run(FIRST, SECOND)["published"]["window"] == SECOND


def test_what_serves_is_not_published_again(runs: Runs) -> None:
    link = runs.trained(0)
    export(runs.chain, link)
    runs.chain.publish(link, datetime(2026, 3, 5, tzinfo=UTC))
    before = runs.chain.published()
    runs.run(FIRST)
    assert runs.chain.published() == before


def test_a_window_from_the_middle_of_a_job_has_no_model_to_publish(runs: Runs) -> None:
    runs.trained(0)
    assert runs.run(FIRST)["published"] is None


def test_a_job_is_followed_to_its_end(runs: Runs) -> None:
    def starts(supervisor: ScriptedSupervisor) -> None:
        supervisor.run()

        def ends() -> None:
            runs.trains(supervisor)
            supervisor.end("succeeded")

        runs.clock.steps = [
            lambda: None,
            lambda: reports(supervisor, window=FIRST, step=5),
            lambda: None,
            ends,
        ]

    runs.run(FIRST, FIRST, starts)
    told = [(progress.step, status.state) for progress, status in runs.told.progress]
    assert told == [(5, "running"), (5, "running"), (5, "succeeded")]


def test_a_job_that_lost_its_supervisor_gets_another_one(runs: Runs) -> None:
    lost = [runs.dies(1), *[runs.dies()] * (SUPERVISOR_RESTARTS_MAX - 1)]

    def trains_the_rest(supervisor: ScriptedSupervisor) -> None:
        supervisor.run()
        plan = runs.stages.ledger.plan(SECOND, 1)
        export(runs.chain, runs.train(plan))
        supervisor.end("succeeded")

    summary = runs.run(FIRST, SECOND, *lost, trains_the_rest)
    assert summary["restarts"]["supervisor"] == SUPERVISOR_RESTARTS_MAX == 3
    assert len(runs.told.submitted) == 1
    assert summary["trained_windows"] == [FIRST, SECOND]


def test_a_supervisor_is_not_started_for_ever(runs: Runs) -> None:
    with pytest.raises(InfrastructureError, match=r"the job ended as lost\nlogs: .*/logs"):
        runs.run(FIRST, FIRST, *[runs.dies()] * (1 + SUPERVISOR_RESTARTS_MAX))
    assert len(runs.supervisors.started) == 4


def test_a_job_that_failed_is_the_error_that_it_failed_with(runs: Runs) -> None:
    error = ErrorReport.of(DataError("part-0.parquet cannot be read"))
    with pytest.raises(DataError) as raised:
        runs.run(FIRST, FIRST, runs.ends("failed", error=error))
    logs = runs.stages.home.job(f"ads.main.{FIRST}..{FIRST}") / "logs"
    assert str(raised.value) == f"part-0.parquet cannot be read\nlogs: {logs}"


def test_a_job_that_was_cancelled_is_an_error_too(runs: Runs) -> None:
    with pytest.raises(InfrastructureError, match="the job ended as cancelled"):
        runs.run(FIRST, FIRST, runs.ends("cancelled"))


def test_a_database_that_comes_back_in_time_ends_nothing(runs: Runs) -> None:
    home = runs.stages.home

    def starts(supervisor: ScriptedSupervisor) -> None:
        supervisor.run()

        def goes() -> None:
            away(home)
            runs.clock.now += GONE_SECONDS * 0.9

        def ends() -> None:
            back(home)
            runs.trains(supervisor)
            supervisor.end("succeeded")

        runs.clock.steps = [goes, lambda: back(home), goes, ends]

    runs.run(FIRST, FIRST, starts)
    assert len(runs.told.away) == 2
    assert all("unable to open database file" in text for text in runs.told.away)


def test_a_database_that_stays_away_longer_than_the_job_waits_is_an_error(runs: Runs) -> None:
    home = runs.stages.home

    def starts(supervisor: ScriptedSupervisor) -> None:
        supervisor.run()
        read_at = runs.clock.now

        def goes() -> None:
            away(home)
            runs.clock.now = read_at + GONE_SECONDS

        runs.clock.steps = [goes, lambda: None]

    with pytest.raises(InfrastructureError, match="unable to open database file"):
        runs.run(FIRST, FIRST, starts)
    assert runs.clock.steps == []
    assert len(runs.told.away) == 1, "it is told until then"
    back(home)


def reports(supervisor: ScriptedSupervisor, **told: Any) -> None:
    """What the trainer of its job reports."""
    write_atomically(supervisor.folder.path / PROGRESS_NAME, Progress(**told).model_dump_json())


def away(home: Home) -> None:
    """Something else is where the database was."""
    database_of(home).close()
    database = home.root / FILE_NAME
    database.rename(home.root / "moved.db")
    database.mkdir()


def back(home: Home) -> None:
    (home.root / FILE_NAME).rmdir()
    (home.root / "moved.db").rename(home.root / FILE_NAME)
