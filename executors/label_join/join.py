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

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.feeds import source_feeds
from forebay.config.label_join import hours_together
from forebay.config.pipelines import PipelineSpec
from forebay.config.sources import SourceSpec
from forebay.config.windows import Interval, order_of
from forebay.datatasks.plans import WindowPlan
from forebay.executors.label_join.published import Floats, GrowingRows, Ints, PublishedRows
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.label_columns import HELD
from forebay.executors.window_files.scores import Segments
from forebay.home.open_store import store_of
from forebay.mixture.minibatch import Minibatch
from forebay.system.instants import to_us

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
        """Go to a window.

        Args:
            plan: of the window.
            before: the link that it starts from; None where the line begins.

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
        """Batch rows with `waits` and `known`."""
        fresh, waits = self._found(minibatch)
        known = np.where(np.isnan(waits), np.nan, fresh == minibatch.labels)
        if minibatch.label_ages is not None:
            dated = ~np.isnan(minibatch.label_ages) & ~np.isnan(waits)
            known = np.where(dated, minibatch.label_ages <= waits, known)
        return replace(minibatch, waits=waits, known=known.astype(np.float32))

    @property
    def rows(self) -> int:
        """Rows of earlier windows that are kept."""
        return len(self._earlier)

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
        continues = before is not None and last is not None and order_of(before) >= order_of(last)
        if not continues or self._is_replaced(last, before):
            last, self._earlier = None, PublishedRows.none()
        if before is not None:
            first = Interval(_EPOCH, since) if last is None else last
            for link in self._chain.between(first, before):
                if last is None or link.name != last.name:
                    self._earlier = self._earlier.followed_by(self._of_window(link))
        self._last = before

    @staticmethod
    def _is_replaced(last: Link | None, before: Link | None) -> bool:
        """Whether a window that was loaded has been trained again."""
        if last is None or before is None:
            return False
        return last.window == before.window and last.generation != before.generation

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
