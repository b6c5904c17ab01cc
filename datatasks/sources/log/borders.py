"""Where the windows of a log's partitions begin and end: decided once, by commit times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

import numpy as np

from forebay.config.windows import Interval
from forebay.datatasks.sources.common.borders import Borders, made_anew
from forebay.datatasks.sources.common.bundles import Ints
from forebay.datatasks.sources.common.deleted_rows import MINUTE, RowsDeletedError
from forebay.datatasks.sources.common.odd_times import odd_times, settled_times
from forebay.datatasks.sources.common.stream_borders import Reached, StreamBorders, time_text
from forebay.system.instants import to_us

# For each instant there is a border of no partition: it says that others were not there yet.
_NO_PARTITION = ""


@dataclass(frozen=True)
class Partition:
    """Segments of one partition in their order: [base, base + rows) and when they were committed.

    at: the index of each among all segments.
    """

    name: str
    base: Ints
    rows: Ints
    commit_us: Ints
    at: Ints

    @property
    def end(self) -> int:
        """The offset that the next row will have."""
        return int(self.base[-1] + self.rows[-1])


class Place(NamedTuple):
    """A log's `path`, `moved` and `starts`, as declared. has_folder: whether a partition has it."""

    path: str
    moved: str | None
    starts: datetime | None
    has_folder: Callable[[str], bool]

    @property
    def topic(self) -> str:
        """What the log's borders are kept under: another log has other offsets."""
        return self.moved or self.path


class LogBorders(StreamBorders):
    """Offsets of every border of the spans, for all partitions."""

    def __init__(
        self,
        partitions: Sequence[Partition],
        spans: Sequence[Interval],
        borders: Borders,
        place: Place,
        jump: timedelta,
        now: datetime,
    ) -> None:
        """Look at commit times.

        Args:
            partitions: with at least one segment each.
            spans: of the windows that are planned.
            borders: what is decided already, and where the rest is.
            place: of the log, and what is declared of it.
            jump: how far ahead of its neighbours a segment's time may be.
            now: the planner's clock, of which it may be as far ahead.
        """
        self._firsts = {each.name: int(each.base[0]) for each in partitions}
        self._starts = place.starts
        planned = borders.partitions(place.topic)
        empty = sorted(planned.keys() - {_NO_PARTITION, *self._firsts})
        gone = {name: planned[name] for name in empty if not place.has_folder(name)}
        given_up = {name for name, until in gone.items() if place.starts and until <= place.starts}
        self._gone = {name: until for name, until in gone.items() if name not in given_up}
        trimmed_away = [name for name in empty if name not in given_up]
        names = [_NO_PARTITION, *self._firsts, *trimmed_away]
        super().__init__(borders, place.topic, names, spans, f"log {place.path}")
        self._oldest_us = {each.name: int(each.commit_us[0]) for each in partitions}
        self._jump_us, self._now_us = jump // timedelta(microseconds=1), to_us(now)
        self.propose(_NO_PARTITION, 0, _always(0))
        for each in partitions:
            self.propose(each.name, each.end, self._reached(each))
            self._require_between_segments(each)
        for name in trimmed_away:  # it continues where it ended, should it come back
            self._firsts[name] = end = self.furthest(name)
            self.propose(name, end, _always(end))

    def _require_between_segments(self, partition: Partition) -> None:
        """Refuse segments that a decided border cuts: it was decided between two of them.

        Raises:
            DataError: when the log was recreated, or segments were joined or cut.
        """
        for offset in self.decided(partition.name):
            at = int(np.searchsorted(partition.base, offset, side="right")) - 1
            if at >= 0 and partition.base[at] < offset < partition.base[at] + partition.rows[at]:
                raise made_anew(
                    self.place(partition.name),
                    f"a window was planned to end at offset {offset}, which is now inside the "
                    f"segment that begins at offset {partition.base[at]}",
                )

    def require_all_kept(self, spans: Sequence[Interval]) -> None:
        """See `require_kept`; and that no partition is gone with rows of which nobody knows."""
        starts = self._starts
        self.require_kept(
            self._firsts,
            spans,
            is_whole=lambda span: starts is not None and span.start <= starts,
            oldest=self._oldest,
        )
        for name, until in self._gone.items():
            after = [span for span in spans if span.end > until]
            if after:
                raise _folder_gone(self.place(name), after, until)

    def _of_others(self, span: Interval, until: datetime) -> str:
        path, _ = self._borders.latest_other(self._topic) or ("", None)
        moved = f", or, if {path} was moved here, `options.moved: {path}` for its late rows too"
        return super()._of_others(span, until) + moved

    def _oldest(self, partition: str, _span: Interval) -> str:
        oldest = self._oldest_us.get(partition)
        return "" if oldest is None else time_text(oldest)

    def _reached(self, partition: Partition) -> Reached:
        """For each instant the first segment that is not older, by `settled_times`; or the end."""
        odd = odd_times(partition.commit_us, self._jump_us, self._now_us)
        reached = np.maximum.accumulate(settled_times(partition.commit_us, odd))
        at = np.searchsorted(reached, [to_us(instant) for instant in self.instants])
        offsets = np.append(partition.base, partition.end)[at]
        by_time = dict(zip(self.instants, offsets.tolist(), strict=True))
        return lambda instant, _low: by_time[instant]


def _folder_gone(place: str, spans: Sequence[Interval], until: datetime) -> RowsDeletedError:
    return RowsDeletedError(
        dict.fromkeys(
            spans, f"{place}: its folder is gone, with what was not planned by {until:{MINUTE}}"
        ),
        "Put it back (an empty folder says that all of its rows were trained and then deleted); or "
        f"declare `starts: {until:{MINUTE}}` to go on without it",
    )


def _always(offset: int) -> Reached:
    """Of a partition without a segment: it has reached all times."""
    return lambda _instant, _low: offset
