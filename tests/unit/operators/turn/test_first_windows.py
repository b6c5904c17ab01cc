"""All runs of a DAG at once, whose first windows have no rows: the line begins by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from support.model_lines import keep_checkpoint, record_link
from support.scripted_supervisor import (
    ScriptedSupervisor,
    ScriptedSupervisors,
    scripted_supervisors,
)
from support.stages import DAY, START, Stages, noon, stages, table

from forebay.config.specs.windows import Window, WindowGrid
from forebay.datatasks.sources.memory.source import MEMORY
from forebay.errors import ConfigError, NotReadyError
from forebay.executors.model_line.lease import Lease, take_lease
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.stages.submit import submit_window
from forebay.executors.stages.turn import decide
from forebay.home.database.format import record_format
from forebay.operators.runs.airflow_runs import OtherRun
from forebay.operators.runs.run_listener import wake_waiting_windows
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.turn import previous_run
from forebay.operators.turn.previous_run import TurnObserver
from forebay.operators.turn.wait import TurnWait
from forebay.system.output.error_report import ErrorReport

WITH_ROWS = 4


class Dag:
    """Each run plans, asks for its turn as its task does, and trains, in steps of any order."""

    def __init__(
        self, found: Stages, supervisors: ScriptedSupervisors, count: int, unplanned: int | None
    ) -> None:
        self.found = found
        self.supervisors = supervisors
        self.states = dict.fromkeys(range(count), "running")
        self.trainings: dict[int, str | None] = dict.fromkeys(range(count))
        self.reasons: dict[int, str] = {}
        self.jobs: dict[int, tuple[ScriptedSupervisor, Lease]] = {}
        self._unplanned = unplanned
        self._planned: set[int] = set()
        self._observers = {number: self._observer(number) for number in range(count)}

    @property
    def active(self) -> list[int]:
        return [number for number, state in self.states.items() if state == "running"]

    def runs_of(self, dag_id: str, window: Window, grid: WindowGrid) -> list[OtherRun]:
        number = (window.start - START) // DAY
        if number not in self.states:
            return []
        return [OtherRun(str(number), self.states[number], window, 0)]

    def latest_active_before(
        self, dag_id: str, window: Window, grid: WindowGrid
    ) -> OtherRun | None:
        numbers = [each for each in self.active if self.found.window(each) < window]
        return self.runs_of(dag_id, self.found.window(max(numbers)), grid)[0] if numbers else None

    def task_states(self, dag_id: str, run_ids: list[str], task_id: str) -> dict[str, str | None]:
        return {run_id: self.trainings[int(run_id)] for run_id in run_ids}

    def step(self, number: int) -> None:
        if number in self.jobs:
            self._end_job(number)
        elif number not in self._planned:
            self._plan(number)
        else:
            self._ask(number)
        assert len(self.jobs) <= 1

    def _observer(self, number: int) -> TurnObserver:
        window = self.found.window(number)
        request = StageRequest("ads", str(number), "task", window, 0, 0, reprocess=False)
        grid = self.found.pipeline.dataset.grid
        return TurnObserver(request, grid, self.found.home, "ads", "main")

    def _plan(self, number: int) -> None:
        if number == self._unplanned:
            reason = "the storage is away"
            self.found.ledger.note(self.found.window(number).key, "not planned", reason=reason)
            self._end(number, "failed", reason)
            return
        self.found.source(number, by=f"{number}#0")
        self.found.sink(number, f"{number}#0")
        self._planned.add(number)

    def _ask(self, number: int) -> None:
        seen, target = self._observers[number].look(), self.found.target(number)
        turn = decide(seen.situation(target.key, TurnWait(deadline=math.inf), None))
        if turn.action == "wait":
            return
        self.supervisors.scripts[:] = [ScriptedSupervisor.run]
        try:
            turn.require()
            asked = submit_window(target, claim=f"{number}", again=False, previous=seen.state)
        except (ConfigError, NotReadyError) as error:
            self._end(number, "failed", str(error))
            return
        if asked.state == "submitted":
            job = self.supervisors.started[-1]
            self.jobs[number] = (job, take_lease(job.request))

    def _end_job(self, number: int) -> None:
        """As its trainer ends, which begins no line with a window without rows."""
        job, lease = self.jobs.pop(number)
        target = self.found.target(number)
        plan, before = target.ledger.latest_plan(target.key), target.chain.before(target.window)
        assert plan is not None
        assert plan.rows is not None
        if before is None and not plan.rows:
            error = NotReadyError("it has learnt from no rows")
            job.end("failed", error=ErrorReport.of(error))
            lease.release()
            self._end(number, "failed", str(error))
            return
        fingerprint = model_fingerprint_of(self.found.pipeline, self.found.sources)
        parent = before.window if before else None
        trained = record_link(
            target.chain, target.key, {"a": plan.rows}, parent=parent, model_fingerprint=fingerprint
        )
        keep_checkpoint(target.chain, trained)
        lease.release()
        job.end("succeeded")
        self._end(number, "success", "")

    def _end(self, number: int, state: str, reason: str) -> None:
        self.states[number] = self.trainings[number] = state
        self.reasons[number] = reason
        if state == "failed":
            wake_waiting_windows("ads")


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stages]:
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(previous_run, "any_runs_until", lambda *_: True)
    with stages(tmp_path) as each:
        record_format(each.home)
        yield each


def run_all(
    found: Stages,
    monkeypatch: pytest.MonkeyPatch,
    empty: int,
    seed: int,
    unplanned: int | None = None,
    deleted: int | None = None,
) -> Dag:
    """A backfill over windows of which the first have no rows, in a random order of steps."""
    count, silent_later = empty + WITH_ROWS, empty + 2
    MEMORY["a"] = table([noon(number) for number in range(empty, count) if number != silent_later])
    random = Random(seed)
    with scripted_supervisors(monkeypatch) as supervisors:
        dag = Dag(found, supervisors, count, unplanned)
        monkeypatch.setattr(previous_run, "runs_of", dag.runs_of)
        monkeypatch.setattr(previous_run, "task_states", dag.task_states)
        monkeypatch.setattr(previous_run, "latest_active_before", dag.latest_active_before)
        if deleted is not None:
            del dag.states[deleted]
        for _ in range(100 * count):
            if not dag.active:
                return dag
            dag.step(random.choice(dag.active))
    raise AssertionError(f"runs wait for ever: {dag.active}, {dag.reasons}")


@pytest.mark.guarantee(
    "the first windows of a backfill in Airflow have no rows",
    "they are red, and the first window with rows begins the line, whatever else is active",
)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("empty", [0, 1, 2, 5])
def test_the_first_window_with_rows_begins_the_line(
    found: Stages, monkeypatch: pytest.MonkeyPatch, empty: int, seed: int
) -> None:
    dag = run_all(found, monkeypatch, empty, seed)
    assert list(dag.states.values()) == ["failed"] * empty + ["success"] * WITH_ROWS, dag.reasons
    for number in range(empty):
        assert "cannot begin line 'main': it has no rows" in dag.reasons[number]
    links = found.target(0).chain.links()
    keys = [found.window(number).key for number in range(empty, empty + WITH_ROWS)]
    assert [link.window for link in links] == keys
    assert [link.parent.window if link.parent else None for link in links] == [None, *keys[:-1]]
    assert len(dag.supervisors.started) == WITH_ROWS, "no job for a window without rows"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("deleted", [1, 2])
def test_no_line_begins_behind_a_run_that_was_deleted(
    found: Stages, monkeypatch: pytest.MonkeyPatch, deleted: int, seed: int
) -> None:
    """It would, while earlier runs are on their way, and all later models would lack their rows."""
    dag = run_all(found, monkeypatch, 0, seed, deleted=deleted)
    links = found.target(0).chain.links()
    assert [link.window for link in links] == [found.window(n).key for n in range(deleted)]
    assert dag.states[deleted + 1] == "failed"
    assert found.window(deleted).key in dag.reasons[deleted + 1]


@pytest.mark.parametrize("seed", range(3))
def test_nothing_begins_after_a_window_that_could_not_be_planned(
    found: Stages, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    dag = run_all(found, monkeypatch, 3, seed, unplanned=1)
    assert (set(dag.states.values()), found.target(0).chain.windows()) == ({"failed"}, [])
    for number in range(2, 3 + WITH_ROWS):
        assert "Clear that run and then this one" in dag.reasons[number]
