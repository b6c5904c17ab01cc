from __future__ import annotations

from datetime import timedelta

import pytest
from pydantic import ValidationError

from forebay.config.specs.pipelines import ScheduleSpec


def test_only_the_newest_window_runs_by_itself_unless_told() -> None:
    assert not ScheduleSpec().catchup
    assert ScheduleSpec.model_validate({"grace": "0s"}).grace == timedelta(0)


@pytest.mark.parametrize("key", ["plan_timeout", "train_timeout"])
def test_what_cannot_work_is_refused(key: str) -> None:
    with pytest.raises(ValidationError, match="no stage can finish in so little time"):
        ScheduleSpec.model_validate({key: "0s"})
