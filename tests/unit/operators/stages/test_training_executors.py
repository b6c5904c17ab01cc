"""training_executors: the job that it follows, and each way in which that job may end."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred
from support.job_tasks import HANDLE, JOB, KEY, REQUEST, SUBMITTED, Place, context, killed, later
from support.jobs import ToldJob, failed, of_another_host

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


def work(operator: JobOperator, **changed: Any) -> dict[str, Any]:
    return operator.work(replace(REQUEST, task_id="training_executors", **changed), context())


def test_the_end_of_a_job_it_attached_to(place: Place) -> None:
    job = ToldJob(place.home)
    job.tell("succeeded")
    job.link(clicks=12, before=5)
    assert work(place.training()) == {
        "window": KEY,
        "generation": 1,
        "job_id": JOB,
        "rows": {"clicks": 12},
        "steps": 4,
        "seconds": 7.0,
    }
    assert job.row.epoch == 2
    work(place.training())
    assert job.row.epoch == 3


def test_it_defers_after_the_grace(place: Place) -> None:
    job = ToldJob(place.home)
    job.tell("running")
    with job.supervised(), pytest.raises(TaskDeferred) as deferred:
        work(place.training(train_seconds=100))
    trigger = deferred.value.trigger
    assert isinstance(trigger, JobTrigger)
    assert (trigger.job_id, trigger.epoch) == (JOB, 2)
    assert [owned.row.epoch for owned in jobs_owned(place.home, "ads/run")] == [2]
    assert 70 < trigger.deadline - time.time() <= 100
    assert deferred.value.method_name == "followed"
    assert deferred.value.timeout.total_seconds() > 600
    assert trigger.not_before > time.time() + 14


def test_it_goes_on_behind_the_deferral(place: Place, monkeypatch: Any) -> None:
    job = ToldJob(place.home)
    job.tell("running")
    operator = place.training()
    with job.supervised(), pytest.raises(TaskDeferred) as deferred:
        work(operator)
    job.tell("succeeded")
    job.link(clicks=3)
    resumed = place.training()
    monkeypatch.setattr(resumed, "request", lambda _: REQUEST)
    found = resumed.followed(context(), {"state": "succeeded"}, **deferred.value.kwargs)
    assert found["rows"] == {"clicks": 3}
    assert job.row.epoch == 2  # the same attempt: no new owner


def test_one_of_a_host_that_is_gone_is_submitted_again(place: Place, monkeypatch: Any) -> None:
    job = ToldJob(place.home)
    job.tell("running")
    operator = place.training()
    with job.supervised(), pytest.raises(TaskDeferred) as deferred:
        work(operator)
    of_another_host(job)
    resumed = place.training()
    monkeypatch.setattr(resumed, "request", lambda _: REQUEST)
    job.link(clicks=3)
    place.submits({**SUBMITTED, "state": "trained"})
    found = resumed.followed(context(), {"state": "lost"}, **deferred.value.kwargs)
    assert (found["rows"], len(place.toy.calls("submit"))) == ({"clicks": 3}, 1)


@pytest.mark.parametrize(
    ("exit_code", "kind"), [(1, ConfigError), (2, NotReadyError), (3, DataError)]
)
def test_data_that_is_bad_stays_bad(exit_code: int, kind: type[ForebayError], place: Place) -> None:
    ToldJob(place.home).tell("failed", failed("X", "the loss is nan", exit_code))
    with pytest.raises(kind, match=r"the loss is nan\nlogs: .*/logs\Z"):
        work(place.training())
    assert place.toy.calls("submit") == []


def test_a_job_that_breaks_while_it_is_followed(place: Place) -> None:
    job = ToldJob(place.home)
    job.tell("running")
    later(lambda: job.tell("failed", failed("OSError", "no space left", 4)))
    with job.supervised(), pytest.raises(InfrastructureError, match="no space left"):
        work(place.training(grace_seconds=60))


def test_a_bug_is_not_tried_again(place: Place) -> None:
    job = ToldJob(place.home)
    job.tell("running")
    broken = failed("ZeroDivisionError", "division by zero", 4, final=True)
    later(lambda: job.tell("failed", broken))
    with job.supervised(), pytest.raises(UsageError, match="division by zero"):
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


def test_a_job_that_somebody_cancels(place: Place) -> None:
    job = ToldJob(place.home)
    job.tell("running")
    later(lambda: job.tell("cancelled", cancelled_by=9))
    with job.supervised(), pytest.raises(UsageError, match="was cancelled: clear this task"):
        work(place.training(grace_seconds=60))


def test_a_job_that_is_lost_again_and_again(place: Place) -> None:
    ToldJob(place.home).tell("running")
    place.submits({**SUBMITTED, "epoch": 3})
    with pytest.raises(InfrastructureError, match=r"lost again, .* resubmitted it 3 times"):
        work(place.training(grace_seconds=60))
    assert len(place.toy.calls("submit")) == RESUBMISSIONS_MAX


def test_cleared_alone_it_trains_again(place: Place) -> None:
    ToldJob(place.home).tell("succeeded")
    job = ToldJob(place.home, "ads.main.2026-03-01.g2")
    job.tell("running")
    place.submits({**SUBMITTED, "job_id": job.job_id, "generation": 2})
    with job.supervised(), pytest.raises(TaskDeferred) as deferred:
        work(place.training(), clear_count=1, clear_number=1)
    (call,) = place.toy.calls("submit")
    assert call[2:4] == ["--claim", "ads/run/training_executors/1"]
    assert "--again" in call
    assert deferred.value.kwargs is not None
    assert (deferred.value.kwargs["generation"], deferred.value.trigger.job_id) == (2, job.job_id)


def test_cleared_with_the_task_before_it_only_attaches(place: Place) -> None:
    job = ToldJob(place.home)
    job.tell("succeeded")
    job.link(clicks=1)
    told = replace(REQUEST, clear_count=1, clear_number=1)
    left = {**HANDLE, "asked_by": "ads/run#1"}
    assert place.training().work(told, context(left))["generation"] == 1
    assert place.toy.calls("submit") == []


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


def test_it_ends_the_job_when_its_time_is_over(place: Place) -> None:
    job = ToldJob(place.home)
    job.tell("running")
    later(lambda: job.tell("cancelled", cancelled_by=1), 0.5)
    with job.supervised(), pytest.raises(ConfigError, match=r"within 0 s \(schedule.train_ti"):
        work(place.training(train_seconds=0))
    assert job.cancel_seen is not None


def test_two_runs_of_one_window_follow_one_job(place: Place) -> None:
    """By hand and on schedule: the older owner sees the end too, but can end nothing."""
    job = ToldJob(place.home)
    job.tell("running")
    job.link(clicks=6)
    operator = place.training(grace_seconds=60)
    later(job.take_over, 0.2)
    later(operator.cancel, 0.6)
    later(lambda: job.tell("succeeded"), 1.2)
    with job.supervised():
        assert work(operator)["rows"] == {"clicks": 6}
    assert job.row.epoch == 3
    assert job.row.cancel_epoch is None


def test_a_kill_ends_the_job(place: Place) -> None:
    job = ToldJob(place.home)
    job.tell("running")
    operator = place.training(grace_seconds=60)
    later(lambda: job.tell("cancelled", cancelled_by=2), 1.0)
    with job.supervised(), killed(operator, 0.5), pytest.raises((InfrastructureError, UsageError)):
        work(operator)
    assert job.cancel_seen is not None
