from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from forebay.config.specs.pipelines import ScheduleSpec


def test_only_the_newest_window_runs_by_itself_unless_told() -> None:
    spec = ScheduleSpec()
    assert not spec.catchup
    assert spec.grace == timedelta(seconds=60)


def test_durations_are_read_as_words() -> None:
    spec = ScheduleSpec.model_validate({"grace": "0s", "turn_wait": "3h", "train_timeout": "30m"})
    assert (spec.grace, spec.turn_wait, spec.train_timeout) == (
        timedelta(0),
        timedelta(hours=3),
        timedelta(minutes=30),
    )


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("retries", 1, "greater than or equal to 2"),
        ("plan_timeout", "0s", "no stage can finish in so little time"),
        ("train_timeout", "0s", "no stage can finish in so little time"),
        ("active_runs_max", 0, "greater than or equal to 1"),
        ("timeout", "1h", "Extra inputs"),
    ],
)
def test_what_cannot_work_is_refused(key: str, value: object, says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        ScheduleSpec.model_validate({key: value})
