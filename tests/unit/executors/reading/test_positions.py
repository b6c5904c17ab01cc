"""The text of a position: what it accepts, and what remains of a range after it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from forebay.datatasks.plans.plan import WindowPlan
from forebay.datatasks.tasks import Position, TaskProgress
from forebay.errors import DataError, UsageError
from forebay.executors.reading.rows import ReadPosition

AT = ReadPosition(
    pipeline="ads",
    window="2026-03-02",
    plan="two",
    progress={"clicks/0": TaskProgress(position=Position(1, 7), rows_read=40)},
)


def plan(day: int, data: str) -> WindowPlan:
    start, key = datetime(2026, 3, day, tzinfo=UTC), f"2026-03-{day:02d}"
    end = start + timedelta(days=1)
    return WindowPlan(window=key, generation=1, start=start, end=end, sources={}, fingerprint=data)


PLANS = [plan(1, "one"), plan(2, "two"), plan(3, "three")]


def test_the_text_of_a_position_is_read_again() -> None:
    assert ReadPosition.of_text(AT.model_dump_json(), "ads") == AT
    with pytest.raises(UsageError, match="of pipeline 'ads', not 'clips'"):
        ReadPosition.of_text(AT.model_dump_json(), "clips")


@pytest.mark.parametrize(
    "text", ["", "{}", "null", '{"pipeline": "ads"}', AT.model_dump_json()[1:]]
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"does not come from `position\(\)`"):
        ReadPosition.of_text(text, "ads")


def test_the_rest_of_a_range_begins_with_its_window_and_the_same_data() -> None:
    assert [each.window for each in AT.rest_of(PLANS)] == ["2026-03-02", "2026-03-03"]
    with pytest.raises(UsageError, match="in window 2026-03-02, but the windows to read are 2026"):
        AT.rest_of(PLANS[2:])
    with pytest.raises(DataError, match="window 2026-03-02 has changed since"):
        AT.rest_of([plan(2, "another")])
