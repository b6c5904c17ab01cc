"""Where the windows of a log's partitions begin and end: decided once, by commit times."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa

from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.contract.borders import Borders, made_anew
from forebay.datatasks.sources.common.contract.deleted_rows import MINUTE, RowsDeletedError
from forebay.datatasks.sources.common.files.bundles import Ints
from forebay.datatasks.sources.common.files.listing import Files, Listing
from forebay.datatasks.sources.common.files.remote import answering
from forebay.datatasks.sources.common.files.versions import described, version_text
from forebay.datatasks.sources.common.streams.odd_times import odd_times, settled_times
from forebay.datatasks.sources.common.streams.stream_borders import Reached, StreamBorders
from forebay.datatasks.sources.common.values.far_times import time_text
from forebay.datatasks.sources.log.kind import LogKind
from forebay.datatasks.sources.log.writer import parse_segment
from forebay.errors import DataError
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
        return int(self.base[-1] + self.rows[-1])


class LogBorders(StreamBorders):
    """Offsets of every border of the spans, for all partitions."""

    def __init__(
        self,
        partitions: Sequence[Partition],
        spans: Sequence[Interval],
        borders: Borders,
        options: LogKind.Options,
        starts: datetime | None,
        has_folder: Callable[[str], bool],
        now: datetime,
    ) -> None:
        """partitions: with at least one segment each. has_folder: whether a partition has one.

        now: the planner's clock, of which a segment's time may be as far ahead as of its neighbour.
        """
        self._firsts = {each.name: int(each.base[0]) for each in partitions}
        topic, self._starts = options.moved or options.path, starts
        planned = borders.partitions(topic)
        empty = sorted(planned.keys() - {_NO_PARTITION, *self._firsts})
        gone = {name: planned[name] for name in empty if not has_folder(name)}
        # Those that `starts` gives up decide nothing more: should one come back, it goes on.
        self._gone = {name: each for name, each in gone.items() if not starts or each > starts}
        trimmed_away = [name for name in empty if name in self._gone or name not in gone]
        names = [_NO_PARTITION, *self._firsts, *trimmed_away]
        super().__init__(borders, topic, names, spans, f"log {options.path}")
        self._oldest_us = {each.name: int(each.commit_us[0]) for each in partitions}
        self._jump_us = options.timestamp_jump_max // timedelta(microseconds=1)
        self._now_us = to_us(now)
        self.propose(_NO_PARTITION, 0, _always(0))
        for each in partitions:
            self.propose(each.name, each.end, self._reached(each))
            self._require_between_segments(each)
        for name in trimmed_away:  # it continues where it ended, should it come back
            self._firsts[name] = end = self.furthest(name)
            self.propose(name, end, _always(end))

    def _require_between_segments(self, partition: Partition) -> None:
        """A border was decided between two segments; DataError where it is now inside of one."""
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
            if after := [span for span in spans if span.end > until]:
                gone = f"its folder is gone, with what was not planned by {until:{MINUTE}}"
                raise RowsDeletedError(
                    dict.fromkeys(after, f"{self.place(name)}: {gone}"),
                    "Put it back (an empty one says that all of its rows were trained and then "
                    f"deleted); or declare `starts: {until:{MINUTE}}` to go on without it",
                )

    def _of_others(self, span: Interval, until: datetime) -> str:
        path, _ = self._borders.latest_other(self._topic) or ("", until)
        moved = f"or, if {path} was moved here, `options.moved: {path}` for its late rows too"
        return f"{super()._of_others(span, until)}, {moved}"

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


def _always(offset: int) -> Reached:
    """Of a partition without a segment: it has reached all times."""
    return lambda _instant, _low: offset


def segments_before(
    files: Files, listing: Listing, partitions: Sequence[Partition], ends: Mapping[str, int]
) -> dict[str, str]:
    """The last one before an offset of each partition: it says later whether a log is this one.

    By `PATH/PARTITION/SEGMENT`, with the log's path as declared, the version: size and SHA-256.
    """
    last = [int(np.searchsorted(each.base, ends.get(each.name, 0))) - 1 for each in partitions]
    at = [each.at[index] for each, index in zip(partitions, last, strict=True) if index >= 0]
    paths = listing.paths.take(pa.array(at, pa.int64())).to_pylist()
    return {f"{files.place}/{path}": _version(files.full(path)) for path in paths}


def require_same(
    files: Files,
    listing: Listing,
    partitions: Sequence[Partition],
    moved: str | None,
    borders: Borders,
) -> None:
    """Refuse a log that is not the one that was planned here, or at its old place.

    Of a partition that was trimmed up to there, nothing is left to compare.

    Raises:
        DataError: which names what differs.
    """
    by_name = {each.name: each for each in partitions}
    planned = by_name.keys() & borders.partitions(moved or files.place).keys()
    known = borders.last_segments(planned, None if moved else files.place)
    if moved and planned and not known:
        raise _not_moved(files, moved, "no checksums of it were kept")
    for place, version in known.items():
        path, name, segment = place.rsplit("/", 2)
        differs = _difference(files, listing, by_name[name], f"{name}/{segment}", version)
        if differs and moved and path != files.place:
            raise _not_moved(files, moved, f"{name}/{segment} {differs}")
        if differs:
            raise made_anew(
                f"log {files.place}, partition {name}",
                f"a window was planned to end behind {name}/{segment}, and now it {differs}",
            )


def _difference(
    files: Files, listing: Listing, partition: Partition, segment: str, version: str
) -> str:
    """What is not as it was at a segment's offset, in words; nothing where it was trimmed away."""
    base = parse_segment(segment.rpartition("/")[2])[0]
    if partition.base[0] > base:
        return ""
    at = int(np.searchsorted(partition.base, base))
    if at == len(partition.at) or listing.paths[int(partition.at[at])].as_py() != segment:
        return "is not there"
    now = _version(files.full(segment))
    return "" if now == version else f"has {described(now)}, and had {described(version)}"


def _not_moved(files: Files, moved: str, differs: str) -> DataError:
    return DataError(
        f"log {files.place}: it cannot be taken for {moved}, moved: {differs} (put it there "
        "as it was, correct `options.moved`, or leave that out and declare `starts`)"
    )


def _version(place: str) -> str:
    with answering(place), Path(place).open("rb") as stream:
        checksum = hashlib.file_digest(stream, "sha256").hexdigest()
        return version_text(stream.tell(), "sha256", checksum)
