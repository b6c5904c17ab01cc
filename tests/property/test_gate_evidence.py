"""Evidence that is handed on from window to window against all rows, read at once."""

from __future__ import annotations

import math
import tempfile
from datetime import timedelta
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support.judged import HOUR, Event, write_judged

from forebay.executors.judging.event_figures import EventFigures
from forebay.executors.judging.event_rows import EventSpan, event_rows
from forebay.executors.judging.evidence.gate_evidence import (
    GateEvidence,
    KnownWindow,
    WindowFigures,
)
from forebay.executors.judging.evidence.gather import TrainedWindow, gather
from forebay.executors.model_line.link import Parent
from forebay.executors.window_files.scores import Segments

COLUMNS = ("mixture", "stream")
SCORES = {event: (event / 40, (event * 7 % 40) / 40) for event in range(36)}  # of others: nobody
HOURS = 8
# Of each hour: event id, by how many hours late it comes (early with a clock that is wrong), label,
# which NaN does not say.
BROUGHT = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 39),
            st.sampled_from([-3, -1, 0, 1, 2, 4]),
            st.sampled_from([0.0, 1.0, math.nan]),
        ),
        max_size=6,
    ),
    min_size=HOURS,
    max_size=HOURS,
)


def trained(folder: Path, brought: list[list[Event]], opened: list[str]) -> list[TrainedWindow]:
    found = []
    for hour, events in enumerate(brought):
        write_judged(folder / str(hour), COLUMNS, events, SCORES, rows_max=5)

        def segments(hour: int = hour) -> Segments:
            opened.append(f"h{hour}")
            return Segments(f"h{hour}", folder / str(hour))

        link = Parent(window=f"h{hour}", generation=1)
        found.append(TrainedWindow(link, hour * HOUR, (hour + 1) * HOUR, segments))
    return found


def numbers(figures: WindowFigures) -> tuple[object, ...]:
    auc, losses = figures.auc, figures.losses
    assert (auc is None) == (losses is None)
    known = () if auc is None or losses is None else (
        *(auc.values.tolist(), auc.covariance.tolist(), auc.positives, auc.negatives, auc.pairs),
        *(losses.values.tolist(), losses.covariance.tolist(), losses.rows, losses.entropy),
        figures.columns,
    )  # fmt: skip
    return (figures.window, figures.all_here, *known)


@settings(max_examples=25, deadline=None)
@given(BROUGHT, st.integers(0, 3), st.sampled_from([1, 2, 5]))
def test_handed_on_it_says_what_all_rows_say(
    late: list[list[tuple[int, int, float]]], delay: int, at_once: int
) -> None:
    """Also where one job trained several windows, and whatever order the same events came in."""
    brought: list[list[Event]] = [
        [(event, max(hour - by + 0.5, 0.0), label) for event, by, label in rows]
        for hour, rows in enumerate(late)
    ]
    with tempfile.TemporaryDirectory() as folder:
        windows = trained(Path(folder), brought, [])
        spans = [EventSpan(one.link.window, one.start, one.end, one.open()) for one in windows]
        known: list[KnownWindow] = []
        for last in range(at_once, HOURS + 1, at_once):
            text = gather(windows[:last], delay + 1, known).model_dump_json()
            evidence = GateEvidence.model_validate_json(text)
            wanted = event_rows(spans[:last], delay + 1, delay * HOUR, COLUMNS)
            found = evidence.figures(timedelta(hours=delay))
            assert [numbers(one) for one in found] == [
                numbers(EventFigures.of(rows)) for rows in wanted
            ]
            known = evidence.of_links([one.link for one in windows[:last]], delay + 1)
            assert known == evidence.windows


def test_rows_of_one_hour_that_come_with_two_windows_read_two(tmp_path: Path) -> None:
    opened: list[str] = []
    brought: list[list[Event]] = [
        [(event, hour + event / 40, event % 2) for event in range(30)]
        + [(event, hour - 0.5, event % 2) for event in range(30, 36) if hour]
        for hour in range(HOURS)
    ]
    windows, known = trained(tmp_path, brought, opened), list[KnownWindow]()
    for last in range(1, HOURS + 1):
        opened.clear()
        known = gather(windows[:last], 1, known).windows
        assert sorted(opened) == [f"h{hour}" for hour in range(max(0, last - 2), last)]


def test_what_is_handed_on_and_read_does_not_grow_with_the_line(tmp_path: Path) -> None:
    """A long line's gate looks at its newest windows: of each it reads the scores once."""
    horizon, looked_at, hours = 2, 12, 40
    brought: list[list[Event]] = [
        [(event, hour - 1 + event / 40, event % 2) for event in range(30) if hour]
        for hour in range(hours)
    ]
    opened: list[str] = []
    windows, sizes = trained(tmp_path, brought, opened), list[int]()
    evidence = GateEvidence(horizon=horizon, windows=[])
    for last in range(1, hours + 1):
        newest = windows[max(0, last - looked_at) : last]
        known = evidence.of_links([one.link for one in newest[:-1]], horizon)
        evidence = gather(newest, horizon, known)
        sizes.append(len(evidence.model_dump_json()))
        assert len(evidence.windows) == len(newest)
        assert opened == [f"h{hour}" for hour in range(last)]
    assert max(sizes) < 1.1 * sizes[looked_at]


def test_windows_that_were_trained_again_are_not_known() -> None:
    def names(*generations: int) -> list[Parent]:
        return [Parent(window=f"h{at}", generation=each) for at, each in enumerate(generations)]

    windows = [
        KnownWindow(link=link, start=at * HOUR, end=(at + 1) * HOUR)
        for at, link in enumerate(names(1, 1, 2))
    ]
    evidence = GateEvidence(horizon=1, windows=windows)
    assert evidence.of_links(names(1, 1, 2), 1) == windows
    assert evidence.of_links(names(1, 1, 2, 1), 1) == windows
    assert evidence.of_links(names(1, 1, 2)[1:], 1) == windows[1:]
    assert evidence.of_links(names(1, 2, 2), 1) == []
    assert evidence.of_links(names(1, 1, 1), 1) == []
    assert evidence.of_links([Parent(window="h9", generation=1), *names(1, 1, 2)], 1) == []
    assert evidence.of_links(names(1, 1, 2), 2) == [], "another horizon"
