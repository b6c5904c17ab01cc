"""The offset that rows of a stream really had, in figures and in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.links import link
from support.task_tables import source_plan

from forebay.datatasks.plans.plan import WindowPlan
from forebay.executors.evaluation.summary import achieved_offsets, offset_words
from forebay.executors.model_line.judgement import StreamOffset
from forebay.executors.window_files.steps import StepPoint
from forebay.home.paths import Home
from forebay.home.store.base import Store
from forebay.home.store.open import store_of
from forebay.system.instants import to_us

START = datetime(2026, 3, 2, tzinfo=UTC)
DAY, HOUR, MINUTE = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1)
KEY = "2026-03-02"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return store_of(Home(tmp_path))


def plan(**offsets: int) -> WindowPlan:
    """A source `a@STREAM` for each stream, and its offset in days; `stream_b`: another in it."""
    sources = {}
    for name, days in offsets.items():
        stream, _, other = name.partition("_")
        source, back = f"{other or 'a'}@{stream}", days * DAY
        planned = source_plan(source, (START - back, START + DAY - back), [(0, 1)])
        of_stream = {"stream": stream, "offset_seconds": int(back.total_seconds())}
        sources[source] = planned.model_copy(update=of_stream)
    return WindowPlan(
        window=KEY, generation=1, start=START, end=START + DAY, sources=sources, fingerprint="f"
    )


def found(
    store: Store, planned: WindowPlan, **times: tuple[datetime, datetime]
) -> dict[str, StreamOffset]:
    us = {
        f"{name.partition('_')[2] or 'a'}@{name.partition('_')[0]}": (to_us(first), to_us(last))
        for name, (first, last) in times.items()
    }
    point = StepPoint(step=1, seconds=1.0, times=us)
    steps = store.put("models/ads/main/w", "g1-steps", point.model_dump_json().encode() + b"\n")
    return achieved_offsets(store, planned, link(KEY, files={"steps": steps}))


def test_rows_of_the_whole_time_have_the_declared_offset(store: Store) -> None:
    whole = (START, START + DAY)
    offsets = found(store, plan(now=0, old=7), now=whole, old=(START - 7 * DAY, START - 7 * DAY))
    assert offsets == {
        "now": StreamOffset(offset_seconds=0, measured_seconds=(0.0, 0.0)),
        "old": StreamOffset(
            offset_seconds=7 * 86_400, measured_seconds=(7 * 86_400.0, 8 * 86_400.0)
        ),
    }
    assert offset_words([offsets]) == ["now 0h (measured 0h)", "old 168h (measured 168h to 192h)"]


def test_late_and_missing_rows_move_an_end(store: Store) -> None:
    late, odd = START - DAY - 36 * MINUTE, START + 36 * MINUTE
    words = offset_words([found(store, plan(now=0, old=1), old=(late, odd))])
    assert words == ["now 0h (not measured)", "old 24h (measured 23.4h to 24.6h)"]


def test_sources_of_a_stream_and_windows_are_taken_together(store: Store) -> None:
    planned = plan(old=1, old_b=1)
    rows = (START - DAY + HOUR, START - 2 * HOUR)
    both = found(store, planned, old=rows, old_b=(START - DAY - HOUR, START - 3 * HOUR))
    assert both["old"].measured_seconds == (25 * 3600.0, 26 * 3600.0)
    exact = found(store, planned, old=(START - DAY, START))
    assert offset_words([both, exact]) == ["old 24h (measured 24h to 26h)"]


def test_without_an_offset_there_is_nothing_to_say(store: Store) -> None:
    offsets = found(store, plan(now=0), now=(START + HOUR, START + HOUR))
    assert offsets["now"].measured_seconds == (-3600.0, 23 * 3600.0)
    assert (offset_words([offsets]), offset_words([])) == ([], [])


def test_what_is_of_before_is_not_measured(store: Store) -> None:
    """Windows whose steps are not kept any more."""
    assert achieved_offsets(store, plan(old=1), link(KEY)) == {
        "old": StreamOffset(offset_seconds=86_400)
    }
