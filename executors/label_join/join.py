"""LabelJoin: tells for batch rows whether the stream had their label when it published them.

The rows of a stream are kept by event id: those of earlier windows from the score segments of the
model line, as far back as `label_join`, and those of this window as they are trained on. What a
batch row finds does not depend on kills: rows of earlier windows are all known before the window
begins, and of this window only rows count that came long enough before the batch row (see
`hours_together`). None of this is part of a checkpoint: it is read again from the segments.

Rows that the guard held are not used. Their labels had stopped coming, and delays that are learned
from them would mistake a fault for late labels, a day after it ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.specs.feeds import hours_together, joined_labels, source_feeds
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval, order_of
from forebay.datatasks.plans.plan import WindowPlan
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.scores import HELD, Segments
from forebay.home.store.open import store_of
from forebay.mixture.minibatch import Minibatch
from forebay.system.instants import to_us

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class PublishedRows:
    """N rows, ascending by event id: 21 bytes of memory each.

    ids, marks: int64[N]; fresh: int8[N], the label as published; waits: float32[N] seconds. A mark
    says when a row was published, in whatever unit its owner chose.
    """

    ids: Ints
    fresh: npt.NDArray[np.int8]
    waits: Floats
    marks: Ints

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def none(cls) -> PublishedRows:
        zero = np.zeros(0, np.int64)
        return cls(zero, zero.astype(np.int8), zero.astype(np.float32), zero)

    @classmethod
    def of(cls, ids: Ints, fresh: Floats, waits: Floats, marks: Ints) -> PublishedRows:
        """From rows in any order; the earliest one of each event is kept."""
        order = np.lexsort((fresh, waits, marks, ids))
        ids = ids[order]
        first = np.ones(len(ids), np.bool_)
        first[1:] = ids[1:] != ids[:-1]
        order = order[first]
        return cls(ids[first], fresh[order].astype(np.int8), waits[order], marks[order])

    def followed_by(self, later: PublishedRows) -> PublishedRows:
        """Both; for the same event, rows of both are kept, this one's first."""
        places = np.searchsorted(self.ids, later.ids, side="right")
        return PublishedRows(
            *(
                np.insert(mine, places, theirs)
                for mine, theirs in zip(self._columns, later._columns, strict=True)
            )
        )

    def united_with(self, other: PublishedRows) -> PublishedRows:
        """Both; the earliest row of each event is kept."""
        place = self.places(other.ids)
        there = place >= 0
        if not there.any():
            return self.followed_by(other)
        both = [np.concatenate(pair) for pair in zip(self._columns, other._columns, strict=True)]
        return PublishedRows.of(*both)

    def since(self, mark: int) -> PublishedRows:
        """Rows with this mark or a later one."""
        kept = self.marks >= mark
        return self if kept.all() else PublishedRows(*(each[kept] for each in self._columns))

    def places(self, ids: Ints) -> Ints:
        """The first row of each event; -1 where there is none."""
        if not len(self.ids):
            return np.full(len(ids), -1, np.int64)
        place = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[place] == ids, place, -1)

    @property
    def _columns(self) -> Sequence[npt.NDArray[Any]]:
        return self.ids, self.fresh, self.waits, self.marks


class GrowingRows:
    """Rows that come a minibatch at a time: a few runs, each twice as long as the next."""

    def __init__(self) -> None:
        self._runs: list[PublishedRows] = []

    def add(self, rows: PublishedRows) -> None:
        """Add rows: each is moved as often as the number of rows has doubled."""
        runs = self._runs
        runs.append(rows)
        while len(runs) > 1 and len(runs[-2]) <= 2 * len(runs[-1]):
            last = runs.pop()
            runs[-1] = runs[-1].united_with(last)

    def drop_before(self, mark: int) -> None:
        self._runs = [kept for kept in (run.since(mark) for run in self._runs) if len(kept)]

    def __len__(self) -> int:
        return sum(len(run) for run in self._runs)

    def find(self, ids: Ints, marks_max: Ints) -> tuple[Floats, Floats]:
        """(fresh, waits) of the earliest row of each event; NaN where its mark is above the bound.

        marks_max: int64[N], the bound of each event.
        """
        found = []
        for rows in self._runs:
            place = rows.places(ids)
            at = np.flatnonzero(place >= 0)
            at = at[rows.marks[place[at]] <= marks_max[at]]
            found.append((at, *(each[place[at]] for each in (rows.fresh, rows.waits, rows.marks))))
        fresh, waits = (np.full(len(ids), np.nan, np.float32) for _ in range(2))
        if found:
            of, *columns = (np.concatenate(each) for each in zip(*found, strict=True))
            # The earliest is written last.
            order = np.lexsort((*columns, of))[::-1]
            fresh[of[order]], waits[of[order]] = columns[0][order], columns[1][order]
        return fresh, waits


Places = npt.NDArray[np.int32]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_US = 1_000_000
_HOUR_US = 3600 * _US
_UNKNOWN = np.iinfo(np.int64).min
# Rows of one hour may be in two minibatches, and clocks may differ by less than an hour.
_HOURS_BESIDE = 2
_HOUR = timedelta(hours=1)
_DAY_HOURS = 24


class LabelJoin:
    """What the stream published, for one trainer. Used from one thread."""

    def __init__(
        self,
        chain: ModelChain,
        pipeline: PipelineSpec,
        sources: Mapping[str, SourceSpec],
        label: str = "",
    ) -> None:
        """Nothing is read yet. label: whose copies are looked for, see `Segments`."""
        self._chain = chain
        self._label = label
        self._within = pipeline.dataset.label_joined_within(label)
        self._together = hours_together(pipeline)
        feeds = source_feeds(pipeline, sources)
        self._is_stream = np.array([feeds[name] == "stream" for name in pipeline.use_names])
        self._offsets = [pipeline.dataset.streams[use.stream].offset for use in pipeline.uses]
        self._last: Link | None = None  # whose rows are in `_earlier`, and all those before
        self._earlier = PublishedRows.none()
        self._this = GrowingRows()
        self._begins = np.zeros(len(self._offsets), np.int64)
        self._hours_max = 0
        # How much older than the stream's newest rows a copy may be, and a day more.
        behind = self._within // _HOUR + pipeline.job.buffers.align_hours
        self._kept_hours = behind + (self._together or 0) + _HOURS_BESIDE + _DAY_HOURS
        self._forgotten = 0

    def begin(self, plan: WindowPlan, before: Link | None) -> None:
        """Go to a window. before: the link that it starts from; None where the line begins.

        Raises:
            DataError: when segments of an earlier window are missing or damaged.
        """
        since = plan.start - self._within
        self._load(since, before)
        self._earlier = self._earlier.since(to_us(since))
        self._hours_max = Interval(plan.start, plan.end).hours - 1
        self._begins = np.array([to_us(plan.start - offset) for offset in self._offsets])
        self._this, self._forgotten = GrowingRows(), 0

    def resume(self, plan: WindowPlan, scores: Path) -> None:
        """Restore rows from the sealed scores of the window itself."""
        table = None if self._together is None else self._published_by(plan.window, scores)
        if table is not None:
            ids, fresh, waits, times, sources = _arrays(table)
            self._this.add(self._of_this(ids, fresh, waits, times, sources))

    def add(self, minibatch: Minibatch) -> None:
        """Add rows of the stream that were just trained on."""
        times, waits = minibatch.event_times, minibatch.waits
        if self._together is None or times is None or waits is None:
            return
        ids, fresh = minibatch.event_ids, minibatch.labels
        if minibatch.held is not None:
            fresh = np.where(minibatch.held, np.float32(np.nan), fresh)
        rows = self._of_this(ids, fresh, waits, times, minibatch.sources)
        self._this.add(rows)
        self._forget(int(rows.marks.max(initial=0)))

    def joined(self, minibatch: Minibatch) -> Minibatch:
        fresh, waits = self._found(minibatch)
        # Whatever `known_at` says: what counts is the label that the stream was trained on.
        known = np.where(np.isnan(waits), np.nan, fresh == minibatch.labels)
        return replace(minibatch, waits=waits, known=known.astype(np.float32))

    def _found(self, minibatch: Minibatch) -> tuple[Floats, Floats]:
        ids = minibatch.event_ids
        if self._together is None or minibatch.event_times is None:
            fresh, waits = (np.full(len(ids), np.nan, np.float32) for _ in range(2))
        else:
            hours = self._hours(minibatch.event_times, minibatch.sources)
            latest = hours - (self._together + _HOURS_BESIDE)
            undated = minibatch.event_times == _UNKNOWN
            fresh, waits = self._this.find(ids, np.where(undated, _UNKNOWN, latest))
        place = self._earlier.places(ids)
        at = np.flatnonzero(place >= 0)
        fresh[at], waits[at] = self._earlier.fresh[place[at]], self._earlier.waits[place[at]]
        return fresh, waits

    def _forget(self, hour: int) -> None:
        """Drop rows that no batch row can look up any more: a warm start may be years long."""
        before = hour - self._kept_hours
        if before >= self._forgotten + _DAY_HOURS:
            self._this.drop_before(before)
            self._forgotten = before

    def _hours(self, times: Ints, sources: Places) -> Ints:
        """Hours since the start of the window's data, for each row by its source.

        Rows with earlier times are served in the first hour, and so are a stream's rows that are
        stamped later: nothing finds them.
        """
        hours = np.floor_divide(times - self._begins[sources], _HOUR_US)
        found: Ints = np.clip(hours, 0, self._hours_max)
        return found

    def _load(self, since: datetime, before: Link | None) -> None:
        """Load what windows that ended since then published; known windows are not read again."""
        last = self._last
        if (
            before is None
            or last is None
            or order_of(before) < order_of(last)
            or (before.window == last.window and before.generation != last.generation)
        ):
            last, self._earlier = None, PublishedRows.none()
        if before is not None:
            first = Interval(_EPOCH, since) if last is None else last
            for link in self._chain.between(first, before):
                if last is None or link.name != last.name:
                    self._earlier = self._earlier.followed_by(self._of_window(link))
        self._last = before

    def _of_window(self, link: Link) -> PublishedRows:
        """What a window published, marked by time, at most the window's end.

        So its rows are all dropped together, however their clocks were set.
        """
        stored = link.files.get("scores")
        folder = store_of(self._chain.home).tree(stored) if stored else None
        table = self._published_by(link.window, folder)
        if table is None:
            return PublishedRows.none()
        ids, fresh, waits, times, sources = _arrays(table)
        at = self._usable(fresh, times, waits, sources)
        marks = np.minimum(_published(times[at], waits[at]), to_us(link.end))
        return PublishedRows.of(ids[at], fresh[at], waits[at], marks)

    def _of_this(
        self, ids: Ints, fresh: Floats, waits: Floats, times: Ints, sources: Places
    ) -> PublishedRows:
        """Rows of this window, marked by the hour in which they are served."""
        at = self._usable(fresh, times, waits, sources)
        published = _published(times[at], waits[at])
        return PublishedRows.of(ids[at], fresh[at], waits[at], self._hours(published, sources[at]))

    def _published_by(self, window: str, folder: Path | None) -> pa.Table | None:
        table = Segments(window, folder, self._label).published()
        return table if table is None else table.filter(pc.invert(table.column(HELD)))

    def _usable(self, fresh: Floats, times: Ints, waits: Floats, sources: Places) -> Ints:
        """Rows of a stream that have the label and a publication time."""
        known = (times != _UNKNOWN) & ~np.isnan(waits) & ~np.isnan(fresh)
        return np.flatnonzero(known & self._is_stream[sources])


def _published(times: Ints, waits: Floats) -> Ints:
    found: Ints = times + (waits.astype(np.float64) * _US).astype(np.int64)
    return found


def _arrays(table: pa.Table) -> tuple[Ints, Floats, Floats, Ints, Places]:
    names = ("event_id", "fresh", "wait", "event_time", "source")
    ids, fresh, waits, times, sources = (table.column(name).to_numpy() for name in names)
    return ids, fresh, waits, times, sources


class LabelJoins:
    """What the stream published for every label, see `LabelJoin`.

    Each label has its own sorted arrays: a stream may publish an event once for each label, and
    each label declares how far back to look.
    """

    def __init__(
        self, chain: ModelChain, pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]
    ) -> None:
        places = ["", *pipeline.dataset.further_labels]
        self._joins = {
            places.index(label): LabelJoin(chain, pipeline, sources, label)
            for label in joined_labels(pipeline)
        }

    def begin(self, plan: WindowPlan, before: Link | None) -> None:
        for join in self._joins.values():
            join.begin(plan, before)

    def resume(self, plan: WindowPlan, scores: Path) -> None:
        for join in self._joins.values():
            join.resume(plan, scores)

    def add(self, minibatch: Minibatch) -> None:
        for place, join in self._joins.items():
            join.add(minibatch.of_label(place))

    def joined(self, minibatch: Minibatch) -> Minibatch:
        found, further = minibatch, list(minibatch.further)
        for place, join in self._joins.items():
            own = join.joined(minibatch.of_label(place))
            if place == 0:
                found = replace(found, waits=own.waits, known=own.known)
            else:
                rows = further[place - 1]
                further[place - 1] = replace(rows, waits=own.waits, known=own.known)
        return replace(found, further=tuple(further))
