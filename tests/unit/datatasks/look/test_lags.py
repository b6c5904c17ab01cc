"""Lags of a pipeline's sources: which are asked, for which group, and what is shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from forebay.config.specs.base import Spec
from forebay.datatasks.look import lags
from forebay.datatasks.look.lags import Lag, commit_group, in_vain, lags_of
from forebay.datatasks.sources.common.contract.base import (
    Commits,
    Describes,
    Description,
    PartitionLag,
)
from forebay.errors import InfrastructureError

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def source_of(
    bounded: bool, lag: Callable[[str], list[PartitionLag]], newest: datetime | None = None
) -> Any:
    class Opened(Describes, Commits):
        def describe(self) -> Description:
            return Description({"at": "timestamp[us, tz=UTC]"}, newest=newest)

        def lag(self, group: str) -> list[PartitionLag]:
            return lag(group)

        def commit(self, *_: object) -> None:
            raise AssertionError

    Opened.bounded = bounded
    spec: Any = SimpleNamespace(event_time="at")
    return Opened(spec, Spec(), Path())


def test_each_stream_is_asked_for_the_group_of_its_pipeline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def behind(group: str) -> list[PartitionLag]:
        asked.append(group)
        ages = (NOW - timedelta(seconds=90), None, NOW + timedelta(seconds=5))
        return [PartitionLag(str(n), (5, 7, 3)[n], age) for n, age in enumerate(ages)]

    def down(group: str) -> list[PartitionLag]:
        raise InfrastructureError(f"no broker for {group}")

    def never(group: str) -> list[PartitionLag]:
        raise AssertionError(group)

    sources = {"history": source_of(True, never, NOW), "clicks": source_of(False, behind)}
    sources |= {"views": source_of(False, down), "log": source_of(False, lambda _: [])}
    monkeypatch.setattr(lags, "open_source", lambda spec, _root: spec)
    pipeline: Any = SimpleNamespace(name="ads", use_names=list(sources))
    found = lags_of(Path(), pipeline, sources, NOW)
    assert asked == ["forebay.ads"]
    assert [(each.source, each.partition, each.count, each.seconds) for each in found] == [
        *(("clicks", "0", 5, 90.0), ("clicks", "1", 7, None), ("clicks", "2", 3, 0.0)),
        ("views", "", 0, None),
    ]
    assert [each.text for each in found] == [
        "clicks, partition 0: 5 rows after the sealed position, the oldest 1 min 30 s old",
        "clicks, partition 1: 7 rows after the sealed position",
        "clicks, partition 2: 3 rows after the sealed position, the oldest 0 s old",
        "views: its lag is not known: no broker for forebay.ads",
    ]
    assert commit_group("ads", "clicks") == "forebay.ads"
    assert commit_group("ads", "clicks@now") == "forebay.ads.now"
    nothing = Lag(source="clicks", partition="3", unit="rows")
    assert nothing.text == "clicks, partition 3: nothing after the sealed position"


def test_times_that_no_row_has_are_no_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """`why` said that a record was 1,793,914,359 s old, and to wait."""
    missing, seconds = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(n) for n in (-1e-9, 20.5))
    behind = [PartitionLag("0", 5, missing), PartitionLag("1", 1, NOW)]
    sources = {"table": source_of(True, lambda _: [], seconds)}
    sources["clicks"] = source_of(False, lambda _: behind)
    monkeypatch.setattr(lags, "open_source", lambda spec, _root: spec)
    pipeline: Any = SimpleNamespace(name="ads", use_names=list(sources))
    table, first, second = lags_of(Path(), pipeline, sources, NOW)
    assert table.text == (
        "table: the time of its newest row is wrong (1970-01-21 12:00:00+00:00, read as "
        "microseconds; as milliseconds it would be 2026-02-16 00:00:00+00:00)"
    )
    assert first.seconds is None
    assert first.text.startswith("clicks, partition 0: 5 rows after the sealed position; the old")
    assert first.text.endswith("0 or -1 in place of a time)")
    assert (second.seconds, second.wrong_time) == (0.0, "")
    assert in_vain([table, first, second]) == (
        "correct the times of table, clicks: no window has such rows"
    )
    assert in_vain([second]) == ""
