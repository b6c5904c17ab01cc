"""Windows by the texts that a user writes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from support.stages import pipeline

from forebay.config.specs.pipelines import PipelineSpec
from forebay.datatasks.window_range import (
    asked_range,
    parse_range,
    parse_window,
    parse_window_or_warm_start,
)
from forebay.errors import ConfigError, NotReadyError, UsageError


def ads(**dataset: Any) -> PipelineSpec:
    return pipeline(["a"], dataset={"end": "2026-03-10", **dataset})


@pytest.mark.parametrize(
    ("first", "last", "message"),
    [
        ("2026-03-02", "2026-03-01", "--from/--to of pipeline 'ads': the last window"),
        ("someday", "2026-03-01", "not a window"),
        ("2026-02-28", "2026-03-01", "before the dataset's start .*: begin with 2026-03-01"),
        ("2026-03-09", "2026-03-10", "2026-03-10 is after the dataset's end"),
        ("2026-03-02", "9999-12-31", "out of range"),
    ],
)
def test_a_range_that_is_none(first: str, last: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_range(ads(), first, last)


@pytest.mark.parametrize("ends", [("2026-03-01", ""), ("", "2026-03-01"), ("", "")])
def test_a_range_has_two_ends(ends: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="write both --from and --to"):
        parse_range(ads(), *ends)


def test_the_window_that_holds_the_start_is_inside() -> None:
    local = ads(timezone="Europe/Berlin")
    assert parse_window(local, "2026-03-01").start < local.dataset.start
    with pytest.raises(ConfigError, match="begin with 2026-03-01"):
        parse_window(local, "2026-02-28")
    with pytest.raises(ConfigError, match="as '2026-03-01'"):
        parse_window(local, "2026-03-1")


def test_the_window_of_a_warm_start() -> None:
    key = "2026-02-01_2026-03-01"
    found = parse_window_or_warm_start(ads(), key)
    assert (found.key, found.start) == (key, datetime(2026, 2, 1, tzinfo=UTC))
    assert parse_window_or_warm_start(ads(), "2026-03-01") == parse_window(ads(), "2026-03-01")
    with pytest.raises(ConfigError, match="not a window"):
        parse_window(ads(), key)
    for broken in ("yesterday_2026-03-01", "2026-02-01_tomorrow"):
        with pytest.raises(ConfigError, match="pipeline 'ads'"):
            parse_window_or_warm_start(ads(), broken)


NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def asked(spec: PipelineSpec, first: str, last: str, until: str = "", now: datetime = NOON) -> Any:
    due_from = datetime.fromisoformat(until + "Z") if until else None
    return [window.key for window in asked_range(spec, first, last, due_from, now)]


@pytest.mark.parametrize(
    ("first", "last", "until", "keys"),
    [
        ("yesterday", "", "", ["2026-03-03"]),
        ("2026-03-02", "yesterday", "", ["2026-03-02", "2026-03-03"]),
        ("", "", "", ["2026-03-01", "2026-03-02", "2026-03-03"]),
        ("", "", "2026-03-02T00:00", ["2026-03-02", "2026-03-03"]),
        ("", "", "2026-03-04T00:00", ["2026-03-03"]),  # nothing is due: the last trained one
        ("2026-03-02", "", "2026-03-04T00:00", ["2026-03-02", "2026-03-03"]),
    ],
)
def test_without_dates_it_is_what_is_due(
    first: str, last: str, until: str, keys: list[str]
) -> None:
    assert asked(ads(), first, last, until) == keys


def test_what_is_due_ends_with_the_dataset_and_begins_with_a_window_that_has_ended() -> None:
    much_later = datetime(2027, 1, 1, tzinfo=UTC)
    assert asked(ads(end="2026-03-02T12:00"), "", "", now=much_later) == [
        "2026-03-01",
        "2026-03-02",
    ]
    assert asked(ads(), "", "", now=datetime(2026, 3, 2, tzinfo=UTC)) == ["2026-03-01"]
    hourly = ads(window="1h", start="2026-03-03T22:00")
    assert asked(hourly, "", "")[-1] == "2026-03-04T11"
    assert asked(hourly, "2026-03-03T23", "yesterday") == ["2026-03-03T23"]
    local = ads(timezone="Asia/Tokyo")  # where it is the fifth already
    assert asked(local, "yesterday", "", now=datetime(2026, 3, 4, 16, tzinfo=UTC)) == ["2026-03-04"]
    with pytest.raises(NotReadyError, match="the first, 2026-03-01, ends at 2026-03-02T00:00Z"):
        asked(ads(), "", "", now=datetime(2026, 3, 1, 23, tzinfo=UTC))
    with pytest.raises(UsageError, match="--to needs --from: write both"):
        asked(ads(), "", "2026-03-01")


@pytest.mark.parametrize(
    ("end", "error", "message"),
    [
        ("2026-03-04", ConfigError, "2026-03-05 is after the dataset's end .*: the last window is"),
        ("2026-03-10", NotReadyError, "2026-03-05 .* has not ended yet: it ends at 2026-03-06T00"),
    ],
)
def test_nobody_named_a_last_window(end: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        asked(ads(end=end), "2026-03-05", "")
