"""data_executors and training_executors over jobs as their folders tell them."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from support.jobs import ToldJob, failed
from support.toy_stage import ToyStage

from forebay.config.windows import WindowGrid, WindowSize
from forebay.errors import (
    ConfigError,
    DataError,
    ForebayError,
    InfrastructureError,
    NotReadyError,
    UsageError,
)
from forebay.executors.job.owner import jobs_owned
from forebay.home.format import record_format
from forebay.home.paths import Home
from forebay.operators.runs.airflow_runs import OtherRun
from forebay.operators.runs.stage_request import StageRequest
from forebay.operators.stages import job_operator, training_executors
from forebay.operators.stages.data_executors import DataExecutorsOperator
from forebay.operators.stages.job_operator import JobOperator
from forebay.operators.stages.training_executors import RESUBMISSIONS_MAX, TrainingExecutorsOperator
from forebay.operators.triggers.job import JobTrigger
from forebay.operators.triggers.turn import TurnTrigger
from forebay.operators.turn import previous_run
from forebay.system.locks import FileLock

GRID = WindowGrid(WindowSize.DAY)
KEY = "2026-03-01"
JOB = "ads.main.2026-03-01.g1"
REQUEST = StageRequest(
    dag_id="ads",
    run_id="run",
    task_id="data_executors",
    window=GRID.parse(KEY),
    clear_number=0,
    clear_count=0,
    reprocess=False,
)
SUBMITTED = {"state": "submitted", "window": KEY, "job_id": JOB, "epoch": 1, "generation": 1}
WAITING = {"state": "waiting", "window": KEY, "reason": "job other trains the line"}
HANDLE = {
    "window": KEY,
    "generation": 1,
    "job_id": JOB,
    "epoch": 1,
    "asked_by": "run#0",
    "claim": "run/data_executors/0",
}


class Runs:
    """Runs of the windows before, newest first, as (state, state of its training task)."""

    def __init__(self) -> None:
        self.before: list[tuple[str, str | None]] = []
        self.earlier: dict[str, tuple[str, str | None]] = {}
        self.any_goes_on = True

    def of(self, dag_id: str, window: Any, grid: Any) -> list[OtherRun]:
        assert dag_id == "ads"
        if window.key == "2026-02-28":
            return [OtherRun(f"b{n}", state, window, 0) for n, (state, _) in enumerate(self.before)]
        found = self.earlier.get(window.key)
        return [OtherRun(window.key, found[0], window, 0)] if found else []

    def states(self, dag_id: str, run_ids: list[str], task_id: str) -> dict[str, str | None]:
        assert task_id == "training_executors"
        trainings = {f"b{n}": training for n, (_, training) in enumerate(self.before)}
        trainings |= {key: training for key, (_, training) in self.earlier.items()}
        return {run_id: trainings[run_id] for run_id in run_ids}

    def until(self, dag_id: str, window: Any) -> bool:
        assert (dag_id, window.key) == ("ads", "2026-02-28")
        return self.any_goes_on


class Place:
    """A home, a stand-in for stages, the runs of the window before, and a job."""

    def __init__(self, root: Path) -> None:
        self.home = Home(root / "home")
        self.toy = ToyStage.make(root / "toy")
        self.runs = Runs()

    def data(self, **more: Any) -> DataExecutorsOperator:
        return DataExecutorsOperator(task_id="data_executors", **self._common(more))

    def training(self, **more: Any) -> TrainingExecutorsOperator:
        return TrainingExecutorsOperator(task_id="training_executors", **self._common(more))

    def _common(self, more: dict[str, Any]) -> dict[str, Any]:
        told = {"pipeline": "ads", "config": "/config", "python": self.toy.python}
        return {**told, "grace_seconds": 0, "stage_seconds": 30, **more}

    def submits(self, *answers: dict[str, Any]) -> None:
        self.toy.answer(submit=[{"prints": answer} for answer in answers])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    record_format(made.home)
    monkeypatch.setenv("FOREBAY_HOME", str(made.home.root))
    monkeypatch.setattr(previous_run, "runs_of", made.runs.of)
    monkeypatch.setattr(previous_run, "task_states", made.runs.states)
    monkeypatch.setattr(previous_run, "any_runs_until", made.runs.until)
    monkeypatch.setattr(job_operator, "_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(training_executors, "_POLL_SECONDS", 0.02)
    return made


def context(left: object = HANDLE) -> Any:
    """What training_executors finds: the other task's XCom."""

    def pull(task_ids: str, default: object) -> object:
        assert task_ids == "data_executors"
        return left

    return {"ti": SimpleNamespace(xcom_pull=pull)}


def fails(place: Place, age_seconds: float = 0.0) -> None:
    """As the listener marks that a run of the DAG has failed."""
    mark = place.home.failed_runs("ads")
    mark.parent.mkdir(parents=True)
    mark.touch()
    os.utime(mark, (time.time() - age_seconds,) * 2)


def later(action: Callable[[], object], seconds: float = 0.3) -> None:
    threading.Timer(seconds, action).start()


@contextmanager
def killed(operator: JobOperator, seconds: float) -> Iterator[None]:
    """As Airflow ends a task: `on_kill` runs inside its work, in a signal handler."""
    before = signal.signal(signal.SIGUSR1, lambda *_: operator.on_kill())
    later(lambda: os.kill(os.getpid(), signal.SIGUSR1), seconds)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


class TestDataExecutors:
    def test_it_hands_a_registered_job_on(self, place: Place) -> None:
        job = ToldJob(place.home)
        job.tell("running")
        place.submits(SUBMITTED)
        operator = place.data(executors=2)
        job.register(0)
        later(lambda: job.register(1))
        with job.supervised():
            left = operator.work(REQUEST, context())
        assert left == HANDLE
        assert [handle.job_id for handle in jobs_owned(place.home, "ads/run")] == [JOB]
        (call,) = place.toy.calls("submit")
        assert call[:6] == ["ads", KEY, "--claim", "run/data_executors/0", "--previous", "none"]
        assert "--again" not in call
        # The job is another task's from here on.
        operator.on_kill()
        assert job.folder.cancel_request() is None

    @pytest.mark.parametrize(
        "stage_request", [replace(REQUEST, reprocess=True), replace(REQUEST, clear_count=1)]
    )
    def test_a_clear_and_conf_ask_for_it_again(
        self, stage_request: StageRequest, place: Place
    ) -> None:
        ToldJob(place.home).tell("succeeded")
        place.submits(SUBMITTED)
        place.data().work(stage_request, context())
        assert "--again" in place.toy.calls("submit")[0]

    def test_a_window_that_is_trained_needs_no_job(self, place: Place) -> None:
        place.submits({"state": "trained", "window": KEY, "generation": 3, "reason": "g3"})
        left = place.data().work(REQUEST, context())
        assert (left["job_id"], left["generation"]) == ("", 3)

    def test_while_the_window_before_runs_nothing_is_asked(self, place: Place) -> None:
        place.runs.before = [("running", "deferred")]
        operator = place.data(turn_wait_seconds=1_000)
        with pytest.raises(TaskDeferred) as deferred:
            operator.work(REQUEST, context())
        assert place.toy.calls("submit") == []
        assert operator.run_before == "b0"
        trigger = deferred.value.trigger
        assert isinstance(trigger, TurnTrigger)
        assert (trigger.pipeline, trigger.line, trigger.before) == ("ads", "main", "2026-02-28")
        assert trigger.seen == {"links": [], "failed_at": 0.0}
        assert deferred.value.method_name == "turn_came"
        assert 600 < deferred.value.timeout.total_seconds() <= 660
        assert 59 < trigger.until - time.time() <= 60
        assert deferred.value.kwargs is not None
        assert deferred.value.kwargs["wait"]["next_look"] == 120

    @pytest.mark.parametrize(
        ("run", "word"),
        [(("success", "success"), "done"), (("failed", "failed"), "failed")],
    )
    def test_the_stage_decides_about_ended_runs(
        self, run: tuple[str, str], word: str, place: Place
    ) -> None:
        place.runs.before = [run]
        place.submits(WAITING)
        with pytest.raises(TaskDeferred):
            place.data().work(REQUEST, context())
        (call,) = place.toy.calls("submit")
        assert call[5] == word

    def test_a_short_look_sees_the_turn_come(self, place: Place) -> None:
        """The stage is asked again when something has changed, and not otherwise."""
        ToldJob(place.home).tell("succeeded")
        place.submits(WAITING, SUBMITTED)
        line = place.home.line("ads")
        line.mkdir(parents=True)
        lease = FileLock(line / "lease.lock")
        assert lease.acquire(1.0)
        later(lease.release, 0.5)
        left = place.data(grace_seconds=60).work(REQUEST, context())
        assert left["job_id"] == JOB
        assert len(place.toy.calls("submit")) == 2

    def test_behind_a_window_that_failed_it_fails_at_once(self, place: Place) -> None:
        """Through windows that only wait: none of them holds the place that a clear needs."""
        place.runs.before = [("running", "scheduled")]
        place.runs.earlier = {"2026-02-27": ("queued", None), "2026-02-26": ("failed", "failed")}
        fails(place)
        with pytest.raises(ConfigError, match=r"the run of window 2026-02-26, .* failed\. Clear"):
            place.data().work(REQUEST, context())
        assert place.toy.calls("submit") == []

    @pytest.mark.parametrize(
        ("earlier", "age"),
        [
            ({"2026-02-27": ("success", "success")}, 0),  # the one before is training now
            ({"2026-02-27": ("failed", "failed")}, 3_600),  # cleared meanwhile, or seen long ago
            ({}, 0),
        ],
    )
    def test_behind_windows_that_go_on_it_waits(
        self, earlier: dict[str, tuple[str, str | None]], age: float, place: Place
    ) -> None:
        place.runs.before = [("running", None)]
        place.runs.earlier = earlier
        fails(place, age)
        with pytest.raises(TaskDeferred):
            place.data().work(REQUEST, context())

    def test_a_failed_run_of_a_window_that_is_trained_holds_nobody(self, place: Place) -> None:
        place.runs.before = [("running", None)]
        place.runs.earlier = {"2026-02-27": ("failed", "failed")}
        link = place.home.model("ads", "main", "2026-02-27", 1) / "window.json"
        link.parent.mkdir(parents=True)
        link.touch()
        fails(place)
        with pytest.raises(TaskDeferred):
            place.data().work(REQUEST, context())

    def test_a_run_that_finds_no_place_is_not_waited_for(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A backfill that runs backwards: all active runs wait for one that is queued."""
        place.runs.before = [("queued", None)]
        place.runs.any_goes_on = False
        operator = place.data()
        monkeypatch.setattr(operator, "request", lambda _: REQUEST)
        looks = [lambda carried: operator.work(REQUEST, context())]
        looks += 2 * [lambda carried: operator.turn_came(context(), {"state": "look"}, **carried)]
        carried: Any = {}
        for look in looks:
            with pytest.raises(TaskDeferred) as deferred:
                look(carried)
            carried = deferred.value.kwargs
        with pytest.raises(AirflowFailException, match="2026-02-28, whose run is queued and"):
            operator.turn_came(context(), {"state": "look"}, **carried)

    def test_a_queued_run_may_wait_for_earlier_ones(self, place: Place) -> None:
        place.runs.before = [("queued", None)]
        operator = place.data()
        with pytest.raises(TaskDeferred) as deferred:
            operator.work(REQUEST, context())
        assert deferred.value.kwargs is not None
        assert deferred.value.kwargs["wait"]["blocked_looks"] == 0

    def test_the_wait_has_an_end(self, place: Place) -> None:
        place.runs.before = [("running", None)]
        with pytest.raises(NotReadyError, match=r"waits for .*2026-02-28.*schedule.turn_wait"):
            place.data(turn_wait_seconds=0).work(REQUEST, context())

    def test_it_goes_on_behind_the_wait(self, place: Place, monkeypatch: Any) -> None:
        ToldJob(place.home).tell("succeeded")
        place.submits(SUBMITTED)
        operator = place.data()
        monkeypatch.setattr(operator, "request", lambda _: REQUEST)
        carried = {"wait": {"deadline": time.time() + 60, "next_look": 120}}
        left = operator.turn_came(context(), {"state": "changed"}, **carried)
        assert left["job_id"] == JOB

    @pytest.mark.parametrize(
        ("exit_code", "kind"),
        [(1, ConfigError), (2, NotReadyError), (3, DataError), (4, InfrastructureError)],
    )
    def test_a_job_that_fails_before_it_serves(
        self, exit_code: int, kind: type[ForebayError], place: Place
    ) -> None:
        ToldJob(place.home).tell("failed", failed("X", "part.parquet is corrupt", exit_code))
        place.submits(SUBMITTED)
        with pytest.raises(kind, match=rf"job {JOB} failed: part.parquet.*\nlogs: .*/logs\Z"):
            place.data().work(REQUEST, context())

    def test_a_lost_job_is_worth_a_retry(self, place: Place) -> None:
        ToldJob(place.home).tell("running")  # nobody supervises it
        place.submits(SUBMITTED)
        with pytest.raises(InfrastructureError, match="lost its supervisor"):
            place.data().work(REQUEST, context())

    def test_executors_that_never_register(self, place: Place) -> None:
        job = ToldJob(place.home)
        job.tell("running")
        place.submits(SUBMITTED)
        later(lambda: job.tell("cancelled", cancelled_by=1), 1.5)
        with (
            job.supervised(),
            pytest.raises(InfrastructureError, match="did not register within 1 s"),
        ):
            place.data(stage_seconds=1).work(REQUEST, context())
        assert job.folder.cancel_request() is not None

    def test_a_kill_while_it_waits_for_executors_ends_the_job(self, place: Place) -> None:
        job = ToldJob(place.home)
        job.tell("submitted")
        place.submits(SUBMITTED)
        operator = place.data()
        with killed(operator, 1.0), pytest.raises((InfrastructureError, UsageError)):
            operator.work(REQUEST, context())
        status = job.folder.stored_status()
        assert status is not None
        assert status.state == "cancelled"

    def test_a_kill_during_the_submission_ends_what_it_started(self, place: Place) -> None:
        """The stage was ended before it could say which job it had submitted."""
        job = ToldJob(place.home)
        place.toy.answer(submit=[{"prints": SUBMITTED, "seconds": 30}])
        operator = place.data()
        later(lambda: job.tell("submitted"), 0.7)
        with killed(operator, 1.0), pytest.raises(InfrastructureError, match="signal SIGTERM"):
            operator.work(REQUEST, context())
        status = job.folder.stored_status()
        assert status is not None
        assert status.state == "cancelled"


class TestTrainingExecutors:
    def work(self, operator: JobOperator, **changed: Any) -> dict[str, Any]:
        told = replace(REQUEST, task_id="training_executors", **changed)
        return operator.work(told, context())

    def test_the_end_of_a_job_it_attached_to(self, place: Place) -> None:
        job = ToldJob(place.home)
        job.tell("succeeded")
        job.link(clicks=12, before=5)
        assert self.work(place.training()) == {
            "window": KEY,
            "generation": 1,
            "job_id": JOB,
            "rows": {"clicks": 12},
            "steps": 4,
            "seconds": 7.0,
        }
        assert job.folder.epoch() == 2
        self.work(place.training())
        assert job.folder.epoch() == 3

    def test_it_defers_after_the_grace(self, place: Place) -> None:
        job = ToldJob(place.home)
        job.tell("running")
        with job.supervised(), pytest.raises(TaskDeferred) as deferred:
            self.work(place.training(train_seconds=100))
        trigger = deferred.value.trigger
        assert isinstance(trigger, JobTrigger)
        assert (trigger.job_id, trigger.epoch) == (JOB, 2)
        assert [handle.epoch for handle in jobs_owned(place.home, "ads/run")] == [2]
        assert 99 < trigger.deadline - time.time() <= 100
        assert deferred.value.method_name == "followed"
        assert deferred.value.timeout.total_seconds() > 600
        assert trigger.not_before > time.time() + 14

    def test_it_goes_on_behind_the_deferral(self, place: Place, monkeypatch: Any) -> None:
        job = ToldJob(place.home)
        job.tell("running")
        operator = place.training()
        with job.supervised(), pytest.raises(TaskDeferred) as deferred:
            self.work(operator)
        job.tell("succeeded")
        job.link(clicks=3)
        resumed = place.training()
        monkeypatch.setattr(resumed, "request", lambda _: REQUEST)
        found = resumed.followed(context(), {"state": "succeeded"}, **deferred.value.kwargs)
        assert found["rows"] == {"clicks": 3}
        assert job.folder.epoch() == 2  # the same attempt: no new owner

    @pytest.mark.parametrize(
        ("exit_code", "kind"), [(1, ConfigError), (2, NotReadyError), (3, DataError)]
    )
    def test_data_that_is_bad_stays_bad(
        self, exit_code: int, kind: type[ForebayError], place: Place
    ) -> None:
        ToldJob(place.home).tell("failed", failed("X", "the loss is nan", exit_code))
        with pytest.raises(kind, match=r"the loss is nan\nlogs: .*/logs\Z"):
            self.work(place.training())
        assert place.toy.calls("submit") == []

    def test_a_job_that_breaks_while_it_is_followed(self, place: Place) -> None:
        job = ToldJob(place.home)
        job.tell("running")
        later(lambda: job.tell("failed", failed("OSError", "no space left", 4)))
        with job.supervised(), pytest.raises(InfrastructureError, match="no space left"):
            self.work(place.training(grace_seconds=60))

    def test_a_bug_is_not_tried_again(self, place: Place) -> None:
        job = ToldJob(place.home)
        job.tell("running")
        broken = failed("ZeroDivisionError", "division by zero", 4, final=True)
        later(lambda: job.tell("failed", broken))
        with job.supervised(), pytest.raises(UsageError, match="division by zero"):
            self.work(place.training(grace_seconds=60))

    @pytest.mark.parametrize(
        ("state", "error"),
        [("failed", failed("OSError", "no space", 4)), ("cancelled", None), ("running", None)],
    )
    def test_a_retry_submits_again_what_had_broken(
        self, state: str, error: Any, place: Place
    ) -> None:
        """An earlier attempt saw it break, or ended it when it was cleared; or it is lost."""
        job = ToldJob(place.home)
        job.tell(state, error)
        job.link(clicks=12)
        done = {**SUBMITTED, "state": "trained"}
        place.submits(done)
        assert self.work(place.training())["rows"] == {"clicks": 12}
        (call,) = place.toy.calls("submit")
        assert call[2:4] == ["--claim", "run/data_executors/0"]
        assert "--again" not in call

    def test_a_job_that_somebody_cancels(self, place: Place) -> None:
        job = ToldJob(place.home)
        job.tell("running")
        later(lambda: job.tell("cancelled", cancelled_by=9))
        with job.supervised(), pytest.raises(UsageError, match="was cancelled: clear this task"):
            self.work(place.training(grace_seconds=60))

    def test_a_job_that_is_lost_again_and_again(self, place: Place) -> None:
        ToldJob(place.home).tell("running")
        place.submits({**SUBMITTED, "epoch": 3})
        with pytest.raises(InfrastructureError, match="lost again after 3 submissions"):
            self.work(place.training(grace_seconds=60))
        assert len(place.toy.calls("submit")) == RESUBMISSIONS_MAX

    def test_cleared_alone_it_trains_again(self, place: Place) -> None:
        ToldJob(place.home).tell("succeeded")
        job = ToldJob(place.home, "ads.main.2026-03-01.g2")
        job.tell("running")
        again = {**SUBMITTED, "job_id": job.job_id, "generation": 2}
        place.submits(again)
        with job.supervised(), pytest.raises(TaskDeferred) as deferred:
            self.work(place.training(), clear_count=1, clear_number=1)
        (call,) = place.toy.calls("submit")
        assert call[2:4] == ["--claim", "run/training_executors/1"]
        assert "--again" in call
        assert deferred.value.kwargs is not None
        assert deferred.value.kwargs["generation"] == 2
        assert deferred.value.trigger.job_id == job.job_id

    def test_cleared_with_the_task_before_it_only_attaches(self, place: Place) -> None:
        job = ToldJob(place.home)
        job.tell("succeeded")
        job.link(clicks=1)
        told = replace(REQUEST, clear_count=1, clear_number=1)
        left = {**HANDLE, "asked_by": "run#1"}
        assert place.training().work(told, context(left))["generation"] == 1
        assert place.toy.calls("submit") == []

    def test_nothing_to_attach_to(self, place: Place) -> None:
        with pytest.raises(UsageError, match="data_executors of this run left nothing"):
            place.training().work(REQUEST, context(None))

    def test_a_window_that_was_trained_already(self, place: Place) -> None:
        ToldJob(place.home).link(clicks=8)
        found = place.training().work(REQUEST, context({**HANDLE, "job_id": ""}))
        assert (found["rows"], found["seconds"]) == ({"clicks": 8}, 0.0)

    def test_success_without_a_model_is_refused(self, place: Place) -> None:
        ToldJob(place.home).tell("succeeded")
        with pytest.raises(InfrastructureError, match="is not trained in generation 1"):
            self.work(place.training())

    def test_a_damaged_link_is_refused(self, place: Place) -> None:
        job = ToldJob(place.home)
        job.tell("succeeded")
        job.link(clicks=1)
        (job.model / "window.json").write_text('{"window": "2026-03-01"}')
        with pytest.raises(InfrastructureError, match=r"is not trained in generation 1: its link"):
            self.work(place.training())

    def test_it_ends_the_job_when_its_time_is_over(self, place: Place) -> None:
        job = ToldJob(place.home)
        job.tell("running")
        later(lambda: job.tell("cancelled", cancelled_by=1), 0.5)
        with job.supervised(), pytest.raises(ConfigError, match=r"within 0 s \(schedule.train_ti"):
            self.work(place.training(train_seconds=0))
        assert job.folder.cancel_request() is not None

    def test_two_runs_of_one_window_follow_one_job(self, place: Place) -> None:
        """By hand and on schedule: the older owner sees the end too, but can end nothing."""
        job = ToldJob(place.home)
        job.tell("running")
        job.link(clicks=6)
        operator = place.training(grace_seconds=60)
        later(job.take_over, 0.2)
        later(operator.cancel, 0.6)
        later(lambda: job.tell("succeeded"), 1.2)
        with job.supervised():
            assert self.work(operator)["rows"] == {"clicks": 6}
        assert job.folder.epoch() == 3
        assert job.folder.cancel_request() is None

    def test_a_kill_ends_the_job(self, place: Place) -> None:
        job = ToldJob(place.home)
        job.tell("running")
        operator = place.training(grace_seconds=60)
        later(lambda: job.tell("cancelled", cancelled_by=2), 1.0)
        with (
            job.supervised(),
            killed(operator, 0.5),
            pytest.raises((InfrastructureError, UsageError)),
        ):
            self.work(operator)
        assert job.folder.cancel_request() is not None
