"""training_executors: the job that it follows, and each way in which that job may end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from support.job_tasks import HANDLE, JOB, KEY, REQUEST, SUBMITTED, Place, context, killed, later
from support.jobs import ToldJob, failed, of_another_host
from support.task_logs import lines_of
from support.there import there

from forebay.errors import (
    ConfigError,
    DataError,
    ForebayError,
    InfrastructureError,
    NotReadyError,
    UsageError,
)
from forebay.executors.job.stored_jobs import jobs_owned
from forebay.operators.stages.job_operator import JobOperator
from forebay.operators.stages.training_executors import RESUBMISSIONS_MAX
from forebay.operators.triggers.job import JobTrigger


@pytest.fixture
def job(place: Place) -> ToldJob:
    made = ToldJob(place.home)
    made.tell("running")
    return made


def work(operator: JobOperator, **changed: Any) -> dict[str, Any]:
    return operator.work(replace(REQUEST, task_id="training_executors", **changed), context())


def deferred(place: Place, job: ToldJob, **more: Any) -> TaskDeferred:
    with job.supervised(), pytest.raises(TaskDeferred) as raised:
        work(place.training(train_seconds=100), **more)
    return raised.value


def resumed(
    place: Place, job: ToldJob, monkeypatch: Any, state: str, end: Callable[[], object]
) -> Any:
    """What it returns behind its deferral, during which a job ends."""
    kwargs, operator = there(deferred(place, job).kwargs), place.training()
    end()
    job.link(clicks=3)
    monkeypatch.setattr(operator, "request", lambda _: REQUEST)
    return operator.followed(context(), {"state": state}, **kwargs)


def test_the_end_of_a_job_it_attached_to(
    place: Place, job: ToldJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = lines_of(monkeypatch)
    job.tell("succeeded")
    job.link(clicks=12, before=5)
    told = {"window": KEY, "generation": 1, "job_id": JOB, "rows": {"clicks": 12}}
    assert (work(place.training()), job.row.epoch) == ({**told, "steps": 4, "seconds": 7.0}, 2)
    assert said == [
        f"logs: {place.home.job(JOB) / 'logs'}",
        f"window {KEY}: attached to job {JOB} (epoch 2)",
        f"window {KEY}: trained in generation 1: clicks 12 rows, 4 steps, 7 s",
    ]
    work(place.training())
    assert job.row.epoch == 3


def test_it_defers_after_the_grace(place: Place, job: ToldJob) -> None:
    found = deferred(place, job)
    trigger = found.trigger
    assert isinstance(trigger, JobTrigger)
    assert (trigger.job_id, trigger.epoch) == (JOB, 2)
    assert [owned.row.epoch for owned in jobs_owned(place.home, "ads/run")] == [2]
    assert 70 < trigger.deadline - time.time() <= 100
    assert found.method_name == "followed"
    assert found.timeout.total_seconds() > 600
    assert trigger.not_before > time.time() + 9


def test_it_goes_on_behind_the_deferral(place: Place, job: ToldJob, monkeypatch: Any) -> None:
    found = resumed(place, job, monkeypatch, "succeeded", lambda: job.tell("succeeded"))
    # The same attempt: no new owner.
    assert (found["rows"], job.row.epoch) == ({"clicks": 3}, 2)


def test_one_of_a_host_that_is_gone_is_submitted_again(
    place: Place, job: ToldJob, monkeypatch: Any
) -> None:
    place.submits({**SUBMITTED, "state": "trained"})
    found = resumed(place, job, monkeypatch, "lost", lambda: of_another_host(job))
    assert (found["rows"], len(place.toy.calls("submit"))) == ({"clicks": 3}, 1)


@pytest.mark.parametrize(
    ("exit_code", "kind"), [(1, ConfigError), (2, NotReadyError), (3, DataError)]
)
def test_data_that_is_bad_stays_bad(exit_code: int, kind: type[ForebayError], place: Place) -> None:
    ToldJob(place.home).tell("failed", failed("X", "the loss is nan", exit_code))
    with pytest.raises(kind, match=r"logs: .*/logs\njob .* failed: the loss is nan\Z"):
        work(place.training())
    assert place.toy.calls("submit") == []


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (failed("OSError", "no space left", 4), InfrastructureError, "no space left"),
        (None, UsageError, "was cancelled: clear this task"),
    ],
    ids=["broken", "cancelled"],
)
def test_a_job_that_ends_while_it_is_followed(
    place: Place, job: ToldJob, error: Any, kind: type[ForebayError], text: str
) -> None:
    told = {"error": error} if error else {"cancelled_by": 9}
    later(lambda: job.tell("failed" if error else "cancelled", **told))
    with job.supervised(), pytest.raises(kind, match=text):
        work(place.training(grace_seconds=60))


@pytest.mark.parametrize(
    ("state", "error"),
    [("failed", failed("OSError", "no space", 4)), ("cancelled", None), ("running", None)],
)
def test_a_retry_submits_again_what_had_broken(state: str, error: Any, place: Place) -> None:
    """An earlier attempt saw it break, or ended it when it was cleared; or it is lost."""
    job = ToldJob(place.home)
    job.tell(state, error)
    job.link(clicks=12)
    place.submits({**SUBMITTED, "state": "trained"})
    assert work(place.training())["rows"] == {"clicks": 12}
    (call,) = place.toy.calls("submit")
    assert call[2:4] == ["--claim", "ads/run/data_executors/0"]
    assert "--again" not in call


def test_a_job_that_is_lost_again_and_again(place: Place, job: ToldJob) -> None:
    place.submits({**SUBMITTED, "epoch": 3})
    with pytest.raises(InfrastructureError, match=r"lost again, .* resubmitted it 3 times"):
        work(place.training(grace_seconds=60))
    assert len(place.toy.calls("submit")) == RESUBMISSIONS_MAX


def test_cleared_alone_it_trains_again(place: Place) -> None:
    ToldJob(place.home).tell("succeeded")
    job = ToldJob(place.home, "ads.main.2026-03-01.g2")
    job.tell("running")
    place.submits({**SUBMITTED, "job_id": job.job_id, "generation": 2})
    found = deferred(place, job, clear_count=1, clear_number=1)
    (call,) = place.toy.calls("submit")
    assert call[2:4] == ["--claim", "ads/run/training_executors/1"]
    assert "--again" in call
    assert (there(found.kwargs)["generation"], found.trigger.job_id) == (2, job.job_id)


def test_cleared_with_the_task_before_it_only_attaches(place: Place, job: ToldJob) -> None:
    job.tell("succeeded")
    job.link(clicks=1)
    left = context({**HANDLE, "asked_by": "ads/run#1"})
    told = replace(REQUEST, clear_count=1, clear_number=1)
    assert (place.training().work(told, left)["generation"], place.toy.calls("submit")) == (1, [])


def test_nothing_to_attach_to(place: Place) -> None:
    with pytest.raises(UsageError, match="data_executors of this run left no result"):
        place.training().work(REQUEST, context(None))


def test_a_window_that_was_trained_already(place: Place) -> None:
    ToldJob(place.home).link(clicks=8)
    found = place.training().work(REQUEST, context({**HANDLE, "job_id": ""}))
    assert (found["rows"], found["seconds"]) == ({"clicks": 8}, 0.0)


def test_success_without_a_model_is_refused(place: Place) -> None:
    ToldJob(place.home).tell("succeeded")
    with pytest.raises(InfrastructureError, match="is not trained in generation 1"):
        work(place.training())


def test_it_ends_the_job_when_its_time_is_over(place: Place, job: ToldJob) -> None:
    later(lambda: job.tell("cancelled", cancelled_by=1), 0.5)
    with job.supervised(), pytest.raises(ConfigError, match=r"within 0 s \(schedule.train_ti"):
        work(place.training(train_seconds=0))
    assert job.cancel_seen is not None


def test_two_runs_of_one_window_follow_one_job(place: Place, job: ToldJob) -> None:
    """By hand and on schedule: the older owner sees the end too, but can end nothing."""
    job.link(clicks=6)
    operator = place.training(grace_seconds=60)
    later(job.take_over, 0.2)
    later(operator.cancel, 0.6)
    later(lambda: job.tell("succeeded"), 1.2)
    with job.supervised():
        assert work(operator)["rows"] == {"clicks": 6}
    assert (job.row.epoch, job.row.cancel_epoch) == (3, None)


def test_a_kill_ends_the_job(place: Place, job: ToldJob) -> None:
    operator = place.training(grace_seconds=60)
    later(lambda: job.tell("cancelled", cancelled_by=2), 1.0)
    with job.supervised(), killed(operator, 0.5), pytest.raises((InfrastructureError, UsageError)):
        work(operator)
    assert job.cancel_seen is not None
