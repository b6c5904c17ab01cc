"""Judged rows by the window of their events, whichever window brought them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from support.judged import HOUR, Event, write_judged
from support.stages import pipeline

from forebay.executors.judging.event_figures import SLICE_VALUES_MAX, EventFigures, pooled_event
from forebay.executors.judging.event_rows import EventRows, EventSpan, event_rows
from forebay.executors.window_files.scores import NO_TIME, Segments

COLUMNS = ("mixture", "stream")
SCORES = {event: (event / 100, 1 - event / 100) for event in range(100)}


def rows_of(folders: list[Path], hours: int, delay: int) -> dict[str, EventRows]:
    """Hours from 0 on, one for each folder."""
    spans = [
        EventSpan(f"h{hour}", hour * HOUR, (hour + 1) * HOUR, Segments(f"h{hour}", folder))
        for hour, folder in enumerate(folders)
    ]
    found = list(event_rows(spans[:hours], delay + 1, delay * HOUR, COLUMNS))
    return {one.window: one for one in found}


def test_rows_of_later_windows_belong_to_the_window_of_their_events(tmp_path: Path) -> None:
    """Two hours later the batch brings an hour; a minute of it comes with the hour after."""
    brought: list[list[Event]] = [
        [],
        [],
        [(1, 0.1, 1), (2, 0.5, 0)],
        [(3, 0.99, 1), (4, 1.0, 0)],
        [(5, 2.5, 1)],
    ]
    seen: list[Event] = [(1, 0.1, 0), (2, 0.5, 0), (3, 0.99, 0), (9, 0.2, 0)]
    folders = [tmp_path / str(hour) for hour in range(5)]
    for hour, folder in enumerate(folders):
        write_judged(folder, COLUMNS, brought[hour], SCORES, fresh=seen if hour == 0 else [])
    found = rows_of(folders, 5, delay=2)
    assert list(found) == ["h0", "h1", "h2", "h3", "h4"]
    first = found["h0"]
    assert (first.judged, first.rows, first.all_here) == (3, 4, True)
    assert first.labels.tolist() == [1, 0, 1]
    np.testing.assert_allclose(first.scores, [SCORES[event] for event in (1, 2, 3)])
    assert first.slices["kind"].tolist() == [1, 2, 0]
    assert (found["h1"].judged, found["h1"].all_here) == (1, True)
    assert (found["h2"].judged, found["h2"].all_here) == (1, True)
    assert (found["h3"].judged, found["h3"].rows, found["h3"].all_here) == (0, 0, False)
    before = rows_of(folders, 3, delay=2)["h0"]
    assert (before.judged, before.rows, before.all_here) == (2, 4, True)
    early = rows_of(folders, 2, delay=2)["h0"]
    assert (early.judged, early.rows, early.all_here) == (0, 4, False)


def test_rows_without_scores_are_counted_by_why_they_have_none(tmp_path: Path) -> None:
    events: list[Event] = [(event, 0.5, event % 2) for event in range(6)]
    write_judged(tmp_path / "0", COLUMNS, events[:2], SCORES)
    write_judged(tmp_path / "1", COLUMNS, events[2:4], link="h generation 1")
    write_judged(tmp_path / "2", COLUMNS, events[4:], link="")
    spans = [EventSpan("h0", 0, HOUR, Segments("h0", tmp_path / "0"))] + [
        EventSpan(f"h{hour}", hour * HOUR, (hour + 1) * HOUR, Segments("", tmp_path / str(hour)))
        for hour in (1, 2)
    ]
    first = next(iter(event_rows(spans, 2, 0, COLUMNS)))
    assert (first.judged, first.gone, first.before, first.left_out, first.rows) == (2, 2, 2, 0, 6)


def test_an_event_counts_once_and_a_window_has_its_bound(tmp_path: Path) -> None:
    twice: list[Event] = [(7, 0.1, 1), (7, 0.2, 0), (8, 0.3, 0)]
    write_judged(tmp_path / "a", COLUMNS, twice, SCORES)
    found = rows_of([tmp_path / "a"], 1, delay=0)["h0"]
    assert (found.labels.tolist(), found.rows) == ([1, 0], 2)
    many: list[Event] = [(event, 0.5, event % 2) for event in range(50)]
    write_judged(tmp_path / "b", COLUMNS, many, SCORES, rows_max=20)
    bounded = rows_of([tmp_path / "b"], 1, delay=0)["h0"]
    assert (bounded.judged, bounded.left_out, bounded.rows) == (20, 30, 50)


def test_windows_that_judged_nothing_have_no_rows(tmp_path: Path) -> None:
    (found,) = event_rows([EventSpan("h0", 0, HOUR, Segments("h0", None))], 3, 0, COLUMNS)
    assert (found.columns, found.scores.shape, found.rows) == (COLUMNS, (0, 2), 0)
    assert list(event_rows([], 3, 0, COLUMNS)) == []


def test_fresh_rows_without_time_count_with_the_window_that_published_them(tmp_path: Path) -> None:
    fresh = [(1, NO_TIME / HOUR, 0.0), (2, 0.5, 0.0), (3, 1.5, 0.0)]
    write_judged(tmp_path / "0", COLUMNS, fresh=fresh[:2])
    write_judged(tmp_path / "1", COLUMNS, [(1, 0.2, 1)], SCORES, fresh=fresh[2:])
    found = rows_of([tmp_path / "0", tmp_path / "1"], 2, delay=1)
    assert [(one.rows, one.judged) for one in found.values()] == [(2, 1), (1, 0)]


def test_slices_may_be_declared_in_the_middle_of_a_line(tmp_path: Path) -> None:
    """So may the bound of a window. Events that some windows brought without values have none."""
    events: list[Event] = [(event, 0.5, event % 2) for event in range(6)]
    write_judged(tmp_path / "0", COLUMNS, events[:2], SCORES, sliced=False)
    write_judged(tmp_path / "1", COLUMNS, events[2:4], SCORES, rows_max=7)
    write_judged(tmp_path / "2", COLUMNS, events[4:], SCORES)
    folders = [tmp_path / str(hour) for hour in range(3)]
    first = rows_of(folders, 3, delay=2)["h0"]
    assert (first.judged, first.columns, first.slices) == (6, COLUMNS, {})
    np.testing.assert_allclose(first.scores[:, 0], [event / 100 for event in range(6)])
    later = rows_of(folders[1:], 2, delay=1)["h0"]
    assert (later.judged, later.slices["kind"].tolist()) == (4, [2, 0, 1, 2])


WINDOWS, VALUES, ROWS = 5, 40, 4_000
MANY = pipeline(
    ("a",),
    dataset={"features": {"user": {"encode": "hash", "buckets": 1_000}}, "slices": ["user"]},
    model={"kind": "towers"},
)


def window(number: int) -> EventRows:
    """Rows of users that no other window has, and of user 1, whom half of them are of."""
    random = np.random.default_rng(number)
    users = random.integers(2 + number * VALUES, 2 + (number + 1) * VALUES, ROWS)
    labels = (random.random(ROWS) < 0.4).astype(np.float32)
    scores = (labels * 0.2 + random.random(ROWS) * 0.8).astype(np.float32)
    return EventRows(
        window=f"w{number}",
        columns=("mixture",),
        labels=labels,
        sources=np.zeros(ROWS, np.int32),
        scores=scores[:, np.newaxis],
        slices={"user": np.where(random.random(ROWS) < 0.5, 1, users)},
        rows=ROWS,
        gone=0,
        before=0,
        left_out=0,
        all_here=True,
    )


def test_pooled_slices_are_bounded_and_leave_no_row_out() -> None:
    """Each window shows the values with most rows there: together they would be any number."""
    figures = [EventFigures.of(window(number), MANY) for number in range(WINDOWS)]
    assert {len(one.parts["user"]) for one in figures} == {SLICE_VALUES_MAX + 1}
    found = pooled_event(figures).slices["user"]
    assert len(found) == SLICE_VALUES_MAX + 1
    assert sum(one["mixture"].rows for one in found.values()) == WINDOWS * ROWS
    first, rest = found["bucket 1"]["mixture"], found["all others"]["mixture"]
    assert first.rows == sum(one.parts["user"]["bucket 1"].rows for one in figures)
    assert all(one["mixture"].rows <= first.rows for one in found.values())
    assert 0.6 < rest.auc.value < 0.8
