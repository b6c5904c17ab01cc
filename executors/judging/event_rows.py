"""Judged rows by the window in which their events happened, gathered from later windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.executors.judging.sample import in_sample
from forebay.executors.window_files.scores import (
    NO_TIME,
    Segments,
    empty_judged,
    judge_rows_max,
    paradigms_of,
    score_matrix,
    slice_ids,
    slices_of,
)

Ids = npt.NDArray[np.int64]
Values = npt.NDArray[np.float32]
Places = npt.NDArray[np.intp]
_NO_IDS: Ids = np.empty(0, np.int64)


class EventSpan(NamedTuple):
    """A trained window: microseconds since 1970 UTC, its end excluded. segments: what it wrote."""

    window: str
    start: int
    end: int
    segments: Segments


@dataclass(frozen=True)
class EventRows:
    """Judged rows of the events of one window, one for each event id: the first one counts.

    columns: names of the C scores. labels: float32[N], complete. sources: int32[N], index in
    `PipelineSpec.uses`. scores: float32[N, C]. slices: ids int64[N] by feature.
    rows: known events of the window, judged or not. gone: events whose link no longer had a
    checkpoint; before: events older than any link; left_out: events beyond the bound of a window.
    all_here: whether every window that brings complete labels is trained.
    """

    window: str
    columns: tuple[str, ...]
    labels: Values
    sources: npt.NDArray[np.int32]
    scores: Values
    slices: dict[str, Ids]
    rows: int
    gone: int
    before: int
    left_out: int
    all_here: bool

    @property
    def judged(self) -> int:
        return len(self.labels)


@dataclass
class _Parts:
    """What windows have brought so far for the events of one window."""

    judged: list[pa.Table] = field(default_factory=list)
    labelled: list[Ids] = field(default_factory=list)
    seen: list[Ids] = field(default_factory=list)


def event_rows(
    spans: Sequence[EventSpan], horizon: int, label_delay: int, columns: Sequence[str]
) -> Iterator[EventRows]:
    """The judged rows of each window, in order.

    spans: trained windows without a gap, in order; the last ones may be there only for the labels
        that they bring for earlier ones.
    horizon: with how many windows after its own complete labels may come.
    label_delay: microseconds after which every complete label has come.
    columns: names of scores, for windows without judged rows.
    """
    starts = np.array([span.start for span in spans], np.int64)
    ends = np.array([span.end for span in spans], np.int64)
    parts = [_Parts() for _ in spans]
    for number, span in enumerate(spans):
        _distribute(span.segments, number, starts, ends, parts)
        done = number - horizon
        if done >= 0:
            yield _rows(spans[done], parts[done], spans[-1].end, label_delay, columns)
            parts[done] = _Parts()
    for done in range(max(0, len(spans) - horizon), len(spans)):
        yield _rows(spans[done], parts[done], spans[-1].end, label_delay, columns)


def _distribute(
    segments: Segments, number: int, starts: Ids, ends: Ids, parts: Sequence[_Parts]
) -> None:
    """number: of the window that wrote the segments; fresh rows without a time count as its own."""
    judged = segments.judged()
    if judged is not None:
        chosen = sampled_rows(judged)
        places = places_of(judged.column("event_time").to_numpy()[chosen], starts, ends)
        for place in np.unique(places[places >= 0]).tolist():
            parts[place].judged.append(judged.take(chosen[places == place]))
    for table, complete in ((segments.labels(), True), (segments.scores(), False)):
        if table is None:
            continue
        ids = table.column("event_id").to_numpy()
        times = table.column("event_time").to_numpy()
        places = places_of(times, starts, ends)
        if not complete:
            places = np.where(times == NO_TIME, number, places)
        for place in np.unique(places[places >= 0]).tolist():
            found = ids[places == place]
            parts[place].seen.append(found)
            if complete:
                parts[place].labelled.append(found)


def sampled_rows(judged: pa.Table) -> Places:
    """Rows in the sample that have this label; rows without it count only for the sample."""
    sampled = in_sample(judged.column("event_id").to_numpy(), judge_rows_max(judged))
    return np.flatnonzero(sampled & ~np.isnan(judged.column("complete").to_numpy()))


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    """Rows that several windows brought, with the columns that all of them have.

    Slices may be declared in the middle of a line: some earlier events have no values for them.
    """
    shared = [
        name
        for name in tables[0].column_names
        if all(name in table.column_names for table in tables)
    ]
    return pa.concat_tables(table.select(shared) for table in tables)


def places_of(times: Ids, starts: Ids, ends: Ids) -> Places:
    """The window that each time is in; -1 for none."""
    found = np.searchsorted(starts, times, side="right") - 1
    return np.where((found >= 0) & (times < ends[found]), found, -1)


def _rows(
    span: EventSpan, parts: _Parts, trained_to: int, label_delay: int, columns: Sequence[str]
) -> EventRows:
    table = _together(parts.judged) if parts.judged else empty_judged(columns)
    ids, first = np.unique(table.column("event_id").to_numpy(), return_index=True)
    table = table.take(np.sort(first))
    is_judged = ~np.isnan(score_matrix(table)).any(axis=1)
    has_link = np.asarray(pc.not_equal(table.column("link"), ""), np.bool_)
    kept = table.filter(pa.array(is_judged))
    labelled = np.unique(np.concatenate([_NO_IDS, *parts.labelled]))
    return EventRows(
        window=span.window,
        columns=paradigms_of(table),
        labels=kept.column("complete").to_numpy(),
        sources=kept.column("source").to_numpy(),
        scores=score_matrix(kept),
        slices={name: slice_ids(kept, name) for name in slices_of(kept)},
        rows=len(np.unique(np.concatenate([ids, *parts.seen]))),
        gone=int((~is_judged & has_link).sum()),
        before=int((~is_judged & ~has_link).sum()),
        left_out=int((~np.isin(labelled, ids)).sum()),
        all_here=trained_to >= span.end + label_delay,
    )
