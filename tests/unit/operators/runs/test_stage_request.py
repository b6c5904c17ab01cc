"""What a run requests of a task, and what is refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from forebay.config.specs.windows import WindowGrid, WindowSize
from forebay.errors import UsageError
from forebay.operators.runs.stage_request import StageRequest, reprocess_of, window_of
from forebay.system.instants import to_us

DAILY = WindowGrid(WindowSize.DAY)
# An id of version 7, made at 08:00; the run starts a minute later.
MADE_AT = datetime(2026, 3, 2, 8, tzinfo=UTC)
START_OF_RUN = MADE_AT + timedelta(minutes=1)
MADE = UUID(int=to_us(MADE_AT) // 1000 << 80 | 7 << 76 | 2 << 62)
START, END = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)


def run(**changes: Any) -> SimpleNamespace:
    told = {
        "dag_id": "ads",
        "run_id": "manual__1",
        "run_type": "manual",
        "logical_date": datetime(2026, 3, 1, 10, 37, tzinfo=UTC),
        "data_interval_start": START,
        "data_interval_end": END,
        "clear_number": 2,
        "start_date": START_OF_RUN,
        "conf": {},
    }
    return SimpleNamespace(**{**told, **changes})


def asked(
    try_number: int,
    max_tries: int,
    retries: int = 3,
    made: UUID = MADE,
    timer: object = None,
    **changes: Any,
) -> StageRequest:
    instance = SimpleNamespace(id=made, task_id="sink", try_number=try_number, max_tries=max_tries)
    instance.xcom_pull = lambda task_ids, default: {"timer": timer}[task_ids] or default
    task = SimpleNamespace(retries=retries)
    context: Any = {"dag_run": run(**changes), "ti": instance, "task": task}
    return StageRequest.of(context, DAILY)


def test_a_first_try_is_asked_by_its_pass() -> None:
    found = asked(1, 3)
    assert (found.window.key, found.asked_by) == ("2026-03-01", "ads/manual__1#2")
    assert (found.claim, found.again) == ("ads/manual__1/sink/0", False)
    assert (found.scheduled, asked(1, 3, run_type="scheduled").scheduled) == (False, True)


def test_a_task_that_was_skipped_until_the_timer_was_cleared_does_it_again() -> None:
    """It never ran, so it does not count as cleared."""
    said = {"state": "open", "again": True}
    assert asked(1, 3, timer=said).again
    assert not asked(1, 3, timer={**said, "again": False}).again
    assert not asked(1, 3, timer=said, clear_number=0).again, "nothing was cleared"


def test_a_run_was_there_when_its_tasks_were_made() -> None:
    assert (asked(1, 3).since, asked(1, 3, start_date=None).since) == (MADE_AT, MADE_AT)
    retried = asked(2, 3, start_date=MADE_AT - timedelta(hours=1))
    assert retried.since == MADE_AT - timedelta(hours=1), "each try has an id of its own"


def test_an_id_without_an_instant_says_nothing() -> None:
    assert asked(1, 3, made=uuid4()).since == START_OF_RUN


def test_a_run_that_was_never_cleared_is_in_its_first_pass() -> None:
    never = run(clear_number=None)
    del never.clear_number
    instance = SimpleNamespace(id=MADE, task_id="sink", try_number=1, max_tries=3)
    context: Any = {"dag_run": never, "ti": instance, "task": SimpleNamespace(retries=3)}
    assert StageRequest.of(context, DAILY).asked_by == "ads/manual__1#0"
    assert asked(1, 3, clear_number=None).asked_by == "ads/manual__1#0"


@pytest.mark.parametrize(
    ("try_number", "max_tries", "retries", "clears"),
    [
        (2, 3, 3, 0),  # a retry
        (2, 4, 3, 1),  # cleared after the first try
        (5, 7, 3, 4),  # cleared after a try, its retries used up
        (1, 5, 3, 0),  # `retries` was 5 when the run was made; nothing was cleared
        (2, 1, 3, 0),  # `retries` was smaller when the run was made
        (2, 0, 0, 0),
        (2, 1, 0, 1),  # without retries each clear counts
    ],
)
def test_clears_are_told_from_retries(
    try_number: int, max_tries: int, retries: int, clears: int
) -> None:
    found = asked(try_number, max_tries, retries)
    assert (found.clear_count, found.again) == (clears, clears > 0)
    assert found.claim == f"ads/manual__1/sink/{clears}"


def test_conf_asks_to_do_it_again() -> None:
    assert asked(1, 3, conf={"reprocess": True}).again
    assert not asked(1, 3, conf={"reprocess": False}).again
    assert not asked(1, 3, conf=None).again
    assert not reprocess_of({"airflow/task_span_detail_level": 2})


@pytest.mark.parametrize(
    ("conf", "text"),
    [
        ({"reproces": True}, r"unknown conf key 'reproces': a run accepts only \{\"reprocess\""),
        ({"b": 1, "a": 2, "reprocess": True}, "unknown conf key 'a', 'b'"),
        ({"reprocess": "yes"}, "conf reprocess is 'yes': write true or false"),
        ({"reprocess": 1}, "conf reprocess is 1"),
    ],
)
def test_any_other_conf_is_refused(conf: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        asked(1, 3, conf=conf)


@pytest.mark.parametrize("lacks", [("logical_date",), ("data_interval_start", "data_interval_end")])
def test_a_run_without_a_logical_date_stands_for_no_window(lacks: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match=r"no logical date.*trigger it with one"):
        window_of(run(**dict.fromkeys(lacks)), DAILY)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (START, datetime(2026, 3, 3, tzinfo=UTC)),  # two windows
        (datetime(2026, 3, 1, 1, tzinfo=UTC), END),  # not aligned
        (START, datetime(2026, 3, 1, 1, tzinfo=UTC)),  # an hour of a daily pipeline
    ],
)
def test_an_interval_that_is_no_window_is_refused(start: datetime, end: datetime) -> None:
    with pytest.raises(UsageError, match="is not the window 2026-03-01"):
        window_of(run(data_interval_start=start, data_interval_end=end), DAILY)
