"""data_executors: whose turn it is, which job it passes on, and how it ends."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowRescheduleException, TaskDeferred
from sqlalchemy import Connection
from support.job_tasks import (
    HANDLE,
    JOB,
    KEY,
    REQUEST,
    SUBMITTED,
    WAITING,
    Place,
    context,
    fails,
    killed,
    later,
)
from support.jobs import ToldJob, failed
from support.model_lines import record_link
from support.task_logs import lines_of
from support.there import there

from forebay.errors import ConfigError, DataError, InfrastructureError, NotReadyError, UsageError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.rows import lease_rows
from forebay.home.database.open import database_of
from forebay.home.paths import Home
from forebay.operators.stages import job_operator
from forebay.operators.triggers.turn import TurnTrigger
from forebay.system.files.locks import FileLock


@pytest.fixture
def job(place: Place) -> ToldJob:
    """The job that the stage answers with, which runs."""
    made = ToldJob(place.home)
    made.tell("running")
    place.submits(SUBMITTED)
    return made


def deferred(place: Place, **more: Any) -> TaskDeferred:
    with pytest.raises(TaskDeferred) as raised:
        place.data(**more).work(REQUEST, context())
    return raised.value


def left(place: Place, away_since: datetime | None = None, **more: Any) -> float:
    """After how many seconds it comes again that has left its place to others of the DAG."""
    with pytest.raises(AirflowRescheduleException) as raised:
        place.data(**more).work(REQUEST, context(away_since=away_since))
    return (raised.value.reschedule_date - datetime.now(UTC)).total_seconds()


def test_it_hands_a_registered_job_on(
    place: Place, job: ToldJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = lines_of(monkeypatch)
    operator = place.data(executors=2)
    job.tell("running", registered=1)
    later(lambda: job.tell("running", registered=2))
    with job.supervised():
        assert operator.work(REQUEST, context()) == HANDLE
    assert said == [
        f"forebay stage submit ads {KEY}",
        f"logs: {place.home.job(JOB) / 'logs'}",
        f"job {JOB} (epoch 1): 2 data executors serve",
    ]
    (call,) = place.toy.calls("submit")
    assert call[:6] == ["ads", KEY, "--claim", "ads/run/data_executors/0", "--previous", "none"]
    assert call[6:8] == ["--run", "ads/run"]
    assert "--again" not in call
    # The job is another task's from here on.
    operator.on_kill()
    assert job.row.cancel_epoch is None


def test_a_window_that_is_trained_needs_no_job(place: Place) -> None:
    place.submits({"state": "trained", "window": KEY, "generation": 3, "reason": "g3"})
    left = place.data().work(REQUEST, context())
    assert (left["job_id"], left["generation"]) == ("", 3)
    place.submits({**SUBMITTED, "state": "trained"})
    assert place.data().work(REQUEST, context())["job_id"] == "", "whoever trained it"


def test_while_the_window_before_waits_itself_the_place_is_left_to_others(place: Place) -> None:
    """Airflow would count a deferred task: neither that window nor any other could start."""
    place.runs.before = [("running", "deferred")]
    operator = place.data(turn_wait_seconds=1_000)
    with pytest.raises(AirflowRescheduleException):
        operator.work(REQUEST, context())
    assert (place.toy.calls("submit"), operator.run_before) == ([], "b0")
    now = datetime.now(UTC)
    assert left(place) == pytest.approx(10, abs=1)
    assert left(place, now - timedelta(seconds=100)) == pytest.approx(25, abs=1)
    assert left(place, now - timedelta(hours=5)) == pytest.approx(60, abs=1)
    ends = now - timedelta(seconds=997)
    assert left(place, ends, turn_wait_seconds=1_000) == pytest.approx(2, abs=1.5)
    with pytest.raises(NotReadyError, match=r"schedule.turn_wait"):
        place.data(turn_wait_seconds=1_000).work(REQUEST, context(away_since=ends - timedelta(9)))


def test_while_a_job_trains_the_window_before_it_is_deferred(place: Place) -> None:
    place.runs.before = [("running", "deferred")]
    lock = FileLock(place.home.line("ads") / "lease.lock")
    lock.path.parent.mkdir(parents=True)
    assert lock.acquire(1.0)
    held_by(place.home, "ads.main.2026-02-28.g1")
    found = deferred(place, turn_wait_seconds=1_000)
    assert place.toy.calls("submit") == []
    trigger = found.trigger
    assert isinstance(trigger, TurnTrigger)
    assert (trigger.pipeline, trigger.line, trigger.before) == ("ads", "main", "2026-02-28")
    seen = {"links": [], "failed_at": 0.0, "further": []}
    assert (trigger.seen, trigger.further) == (seen, "2026-02-27")
    assert found.method_name == "turn_came"
    assert 600 < found.timeout.total_seconds() <= 660
    assert 59 < trigger.deadline - time.time() <= 60
    assert there(found.kwargs)["wait"]["next_look"] == 120


@pytest.mark.parametrize(("state", "word"), [("success", "done"), ("failed", "failed")])
def test_the_stage_decides_about_ended_runs(state: str, word: str, place: Place) -> None:
    place.runs.before = [(state, state)]
    place.submits(WAITING)
    seen = {"held": False, "is_near": False, "links": [], "further": [], "failed_at": 0.0}
    assert deferred(place).trigger.seen == seen
    (call,) = place.toy.calls("submit")
    assert call[5] == word


def test_a_short_look_sees_the_turn_come(place: Place) -> None:
    """The stage is asked again when something has changed, and not otherwise."""
    ToldJob(place.home).tell("succeeded")
    place.submits(WAITING, SUBMITTED)
    line = place.home.line("ads")
    line.mkdir(parents=True)
    lease = FileLock(line / "lease.lock")
    assert lease.acquire(1.0)
    later(lease.release, 0.5)
    assert place.data(grace_seconds=60).work(REQUEST, context())["job_id"] == JOB
    assert len(place.toy.calls("submit")) == 2


def test_while_the_window_before_is_trained_it_keeps_its_slot_for_longer(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_operator, "_FAR_SECONDS", 0.2)
    place.runs.before = [("running", "deferred")]
    record_link(ModelChain(place.home, "ads"), "2026-02-27", {"clicks": 1})
    lock = FileLock(place.home.line("ads") / "lease.lock")
    lock.path.parent.mkdir(parents=True)
    assert lock.acquire(1.0)
    for grace, least, most in ((2.0, 1.9, 4.0), (0.0, 0.0, 1.5)):
        held_by(place.home, "ads.main.2026-02-28.g2")
        began = time.monotonic()
        trigger = deferred(place, grace_seconds=grace).trigger
        assert least <= time.monotonic() - began < most
        assert "further" not in trigger.seen, "it has happened"
    held_by(place.home, "ads.main.2026-02-27.g1")
    began = time.monotonic()
    left(place, grace_seconds=2.0)
    assert 0.2 <= time.monotonic() - began < 1.5


def held_by(home: Home, job_id: str) -> None:
    ToldJob(home, job_id).tell("running")

    def work(rows: Connection) -> None:
        seen = lease_rows.holder(rows, "ads", "main")
        assert lease_rows.take(rows, "ads", "main", job_id, seen)

    database_of(home).transact(work)


def test_what_is_unchanged_is_asked_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.submits(WAITING)
    said = lines_of(monkeypatch)
    deferred(place, grace_seconds=1)
    assert len(place.toy.calls("submit")) == 1
    assert said == [f"forebay stage submit ads {KEY}"], "the stage says why it waits"


def test_news_is_looked_at_soon_and_what_it_waits_for_is_said_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.runs.before = [("running", None)]
    said = lines_of(monkeypatch)
    later(lambda: record_link(ModelChain(place.home, "ads"), "2026-02-28", {"clicks": 1}), 0.3)
    began = time.monotonic()
    assert left(place, grace_seconds=1) == pytest.approx(10, abs=1)
    assert time.monotonic() - began >= 1.2, "the run before ends within seconds: it stayed a while"
    assert said == [f"window {KEY} waits for window 2026-02-28, whose run has not ended"]


def test_behind_a_window_that_failed_it_fails_at_once(place: Place) -> None:
    """Through windows that only wait: none of them holds the place that a clear needs."""
    place.runs.before = [("running", "scheduled")]
    place.runs.earlier = {"2026-02-27": ("queued", None), "2026-02-26": ("failed", "failed")}
    fails(place)
    with pytest.raises(ConfigError, match=r"the run of window 2026-02-26, .* failed\. Clear"):
        place.data().work(REQUEST, context())
    assert place.toy.calls("submit") == []


@pytest.mark.parametrize(
    ("earlier", "age", "trained"),
    # The first trains now; the second was cleared meanwhile, or seen long ago.
    [("success", 0, False), ("failed", 3_600, False), ("", 0, False), ("failed", 0, True)],
)
def test_behind_windows_that_go_on_it_waits(
    earlier: str, age: float, trained: bool, place: Place
) -> None:
    place.runs.before = [("running", None)]
    place.runs.earlier = {"2026-02-27": (earlier, earlier)} if earlier else {}
    if trained:
        record_link(ModelChain(place.home, "ads"), "2026-02-27", {"clicks": 1})
    fails(place, age)
    assert left(place) > 0


def test_who_finds_no_place_is_not_awaited(place: Place) -> None:
    """A backfill that runs backwards: all active runs wait for one that is queued."""
    place.runs.before = [("queued", None)]  # it may wait for earlier ones
    long_ago = datetime.now(UTC) - timedelta(seconds=200)
    assert left(place, long_ago) > 0
    place.runs.any_goes_on = False
    assert left(place, long_ago + timedelta(seconds=80)) > 0
    with pytest.raises(ConfigError, match="2026-02-28, whose run is queued and"):
        place.data().work(REQUEST, context(away_since=long_ago))


def test_the_wait_has_an_end(place: Place) -> None:
    place.runs.before = [("running", None)]
    with pytest.raises(NotReadyError, match=r"waits for .*2026-02-28.*schedule.turn_wait"):
        place.data(turn_wait_seconds=0).work(REQUEST, context())


def test_it_goes_on_behind_the_wait(place: Place, job: ToldJob, monkeypatch: Any) -> None:
    job.tell("succeeded")
    operator = place.data()
    monkeypatch.setattr(operator, "request", lambda _: REQUEST)
    carried = {"wait": {"deadline": time.time() + 60, "next_look": 120}}
    assert operator.turn_came(context(), {"state": "changed"}, **carried)["job_id"] == JOB


def test_who_fails_before_it_serves(place: Place, job: ToldJob) -> None:
    with pytest.raises(InfrastructureError, match="lost its supervisor"):
        place.data().work(REQUEST, context())  # nobody supervises it
    job.tell("failed", failed("X", "part.parquet is corrupt", 3))
    with pytest.raises(DataError, match=rf"logs: .*\njob {JOB} failed: part.parquet is corrupt\Z"):
        place.data().work(REQUEST, context())


def test_executors_that_never_register(place: Place, job: ToldJob) -> None:
    later(lambda: job.tell("cancelled", cancelled_by=1), 4.0)
    with job.supervised(), pytest.raises(InfrastructureError, match="did not register within 1 s"):
        place.data(stage_seconds=1).work(REQUEST, context())
    assert job.cancel_seen is not None


def test_a_kill_while_it_waits_for_executors_ends_the_job(place: Place, job: ToldJob) -> None:
    operator = place.data()
    later(lambda: job.tell("cancelled", cancelled_by=1), 1.5)
    with job.supervised(), killed(operator, 1.0), pytest.raises((InfrastructureError, UsageError)):
        operator.work(REQUEST, context())
    assert job.cancel_seen == 1


@pytest.mark.parametrize(
    ("state", "seconds", "left"),
    [
        ("submitted", 0.7, "cancelled"),
        ("submitted", 0, "submitted"),  # there before: it belongs to somebody else
        ("succeeded", 0.7, "succeeded"),  # it has ended
    ],
)
def test_a_kill_during_the_submission_ends_only_what_it_started(
    place: Place, state: str, seconds: float, left: str
) -> None:
    """The stage was ended before it could say which job it had submitted."""
    job = ToldJob(place.home)
    if seconds:
        later(lambda: job.tell(state), seconds)
    else:
        job.tell(state)
    place.toy.answer(submit=[{"prints": SUBMITTED, "seconds": 30}])
    operator = place.data()
    with killed(operator, 1.0), pytest.raises(InfrastructureError, match="ended by SIGTERM"):
        operator.work(REQUEST, context())
    assert (job.row.state, job.row.cancel_epoch) == (left, None)
