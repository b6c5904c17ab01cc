"""Kind `log`: an append-only directory, for wherever micro-batches land as files.

`DIR/<partition>/<base offset:020d>-<rows:08d>-<commit ms:015d>.arrow`: Arrow IPC files, immutable
once they have that name. Offsets of a partition count its rows from 0 without a hole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.specs.base import Spec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.contract.base import (
    Describes,
    Description,
    Finding,
    Readiness,
    Scan,
)
from forebay.datatasks.sources.common.files.bundles import Ints, RowRanges, fingerprints, to_tasks
from forebay.datatasks.sources.common.files.listing import READ_ERRORS, Files, Listing
from forebay.datatasks.sources.common.files.markers import MarkerSource
from forebay.datatasks.sources.common.files.path_times import matching
from forebay.datatasks.sources.common.streams.odd_times import odd_times
from forebay.datatasks.sources.common.streams.stream_borders import stamp_words
from forebay.datatasks.sources.common.values.casting import column_findings
from forebay.datatasks.sources.common.values.far_times import are_far
from forebay.datatasks.sources.common.values.times import Spans
from forebay.datatasks.sources.formats.unchecked_types import stored_problem
from forebay.datatasks.sources.log.borders import (
    LogBorders,
    Partition,
    require_same,
    segments_before,
)
from forebay.datatasks.sources.log.kind import LogKind
from forebay.datatasks.sources.log.read import LogReader, segment_location
from forebay.datatasks.sources.log.segment_file import SegmentFile
from forebay.datatasks.sources.log.writer import SEGMENT_REGEX
from forebay.datatasks.tasks import Chunk, DataTask, Position
from forebay.errors import DataError
from forebay.system.clock import utc_now
from forebay.system.instants import MICROSECOND, shown_instant, to_us

_MS_US = 1000
_OFFSET_LAST = "09000000000000000000"

# Micro-batches are small: a task takes those of up to a day, since opening a task costs more.
BUNDLE_HOURS = 24


@dataclass(frozen=True)
class _Segments:
    """All segments of all partitions, sorted by path: those of a partition by their base offset."""

    listing: Listing
    partitions: pa.Array
    base: Ints
    rows: Ints
    commit_us: Ints

    @classmethod
    def of(cls, listing: Listing) -> _Segments:
        """Read the numbers out of the file names; other files are no segments."""
        kept = listing.take(matching(listing.paths, f"[^/]+/{SEGMENT_REGEX}"))
        parts = pc.extract_regex(kept.paths, f"^(?P<partition>[^/]+)/{SEGMENT_REGEX}$")
        # Twenty digits may be more than a number holds; texts of one length compare as numbers do.
        beyond = pc.index(pc.greater(parts.field("base"), _OFFSET_LAST), True).as_py()
        if beyond >= 0:
            raise DataError(
                f"segment {kept.paths[beyond].as_py()}: its name begins with an offset that no "
                "partition reaches (move it away)"
            )
        base, rows, commit = (
            np.asarray(parts.field(name).cast(pa.int64())) for name in ("base", "rows", "commit")
        )
        return cls(kept, parts.field("partition"), base, rows, commit * _MS_US)


class LogSource(LogKind, MarkerSource, Describes):
    """A log directory, cut by the commit time in the segments' names.

    Complete: when the clock has passed the span's end by `close_delay`, since a segment gets its
    commit time when it becomes visible. With `ready.marker`, every partition must have a segment
    committed at or after the span's end, or the marker file, which says that it has ended.
    """

    options: LogKind.Options

    def __init__(self, spec: SourceSpec, options: Spec, root: Path) -> None:
        super().__init__(spec, options, root)
        self.close_delay = self.options.close_delay
        self._files = Files(self.options.path, root, {}, (".arrow",))

    def describe(self) -> Description:
        segments = self._segments()
        if not len(segments.base):
            return Description({}, empty_reason=self._nothing())
        newest = int(np.argmax(segments.commit_us))
        path = segments.listing.paths[newest].as_py()
        try:
            schema = self._schema(path)
        except READ_ERRORS as error:
            return Description({}, empty_reason=f"segment {path} cannot be read: {error}")
        return Description(
            {field.name: str(field.type) for field in schema},
            pc.unique(segments.partitions).to_pylist(),
            shown_instant(int(segments.commit_us[newest])),
        )

    def findings(self) -> list[Finding]:
        segments = self._segments()
        if not len(segments.base):
            return [Finding(("options", "path"), "nothing-matched", self._nothing())]
        path = segments.listing.paths[int(np.argmax(segments.commit_us))].as_py()
        try:
            schema = self._schema(path)
        except READ_ERRORS as error:
            return [Finding(("options", "path"), "unreadable", f"segment {path}: {error}")]
        found = column_findings(schema, self.spec.columns, path, stored_problem)
        return [*found, *self._time_findings(segments)]

    def _time_findings(self, segments: _Segments) -> Iterator[Finding]:
        """Rows that no window has now: nothing but far times, or a partition that ends ahead."""
        ahead, now_us = self.options.timestamp_jump_max, to_us(utc_now())
        places = {"": np.sort(segments.commit_us)}
        if not are_far(places[""], now_us, ahead).all():
            last = {f" partition {each.name}:": each.commit_us for each in _by_partition(segments)}
            is_ahead = {
                name: times[-1] > now_us + ahead // MICROSECOND for name, times in last.items()
            }
            places = {name: times for name, times in last.items() if is_ahead[name]}
        for place, times in places.items():
            message = f"log {self.options.path}:{place} {stamp_words(times, now_us)}"
            yield Finding(("options", "path"), "row-times", message)

    def marked(self, spans: Sequence[Interval], marker: str) -> list[Readiness]:
        segments = self._segments()
        names = pc.unique(segments.partitions).to_pylist()
        if not names:
            nothing = Readiness(ready=False, reason=self._nothing())
            return [nothing for _ in spans]
        latest = to_us(max(span.end for span in spans))
        newest = {each.name: self._newest_us(each) for each in _by_partition(segments)}
        unmarked = {
            name: commit
            for name, commit in newest.items()
            if commit < latest and not self._files.exists(f"{name}/{marker}")
        }
        return [self._passed(span, unmarked, marker) for span in spans]

    def _newest_us(self, partition: Partition) -> int:
        """The newest commit that no clock has stamped far ahead."""
        jump_us = self.options.timestamp_jump_max // timedelta(microseconds=1)
        odd = odd_times(partition.commit_us, jump_us, to_us(utc_now()))
        usual = partition.commit_us[~odd]
        return int(usual.max()) if len(usual) else 0

    @staticmethod
    def _passed(span: Interval, unmarked: Mapping[str, int], marker: str) -> Readiness:
        """unmarked: partitions that have not ended, each with its newest commit."""
        end = to_us(span.end)
        behind = next((name for name, commit in unmarked.items() if commit < end), None)
        if behind is None:
            return Readiness(ready=True)
        reason = f"partition {behind} has no segment after {span.end.isoformat()}"
        return Readiness(ready=False, reason=f"{reason} and no {marker}")

    def scan(self, spans: Sequence[Interval]) -> Scan:
        before = self._files.calls
        segments = self._segments()
        self._files.require_one_name(segments.listing)
        if not len(segments.base) and not self._files.exists(""):
            raise DataError(f"source {self.spec.name!r}: {self._nothing()}")
        self._check_offsets(segments)
        partitions = list(_by_partition(segments))
        require_same(self._files, segments.listing, partitions, self.options.moved, self.borders)
        starts, has_folder, now = self.spec.starts, self._files.exists, utc_now()
        borders = LogBorders(partitions, spans, self.borders, self.options, starts, has_folder, now)
        borders.require_all_kept(spans)
        stored = {each.name: (int(each.base[0]), each.end) for each in partitions}
        times = {each.name: each.commit_us for each in partitions}
        borders.require_near(stored, times.__getitem__, self.options.timestamp_jump_max, now)
        borders.decide()
        bounds = Spans(spans)
        found = np.full(len(segments.base), -1, np.int64)
        for partition in partitions:
            found[partition.at] = _span_of(partition, borders, spans)
        chosen = np.flatnonzero((found >= 0) & (segments.rows > 0))
        span = found[chosen]
        ranges = RowRanges(
            span=span,
            hour=bounds.hours(span, segments.commit_us[chosen]).astype(np.int64),
            file=chosen,
            first=np.zeros(len(chosen), np.int64),
            end=segments.rows[chosen],
            rows=segments.rows[chosen],
            size_bytes=segments.listing.sizes[chosen],
        )
        paths, versions = segments.listing.paths, segments.listing.versions
        tasks = to_tasks(ranges, paths, segments.partitions, BUNDLE_HOURS, versions)
        texts = fingerprints(len(spans), ranges, paths, versions, self.spec.kind)
        offsets = [
            {partition.name: borders.offsets(partition.name, each) for partition in partitions}
            for each in spans
        ]
        ends = {name: end for name, (_, end) in offsets[-1].items()} if spans else {}
        last_segments = segments_before(self._files, segments.listing, partitions, ends)
        return Scan(tasks, texts, self._files.calls - before, offsets, last_segments)

    def open(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        return LogReader(self.spec, self._files).read(task, position, columns, chunk_rows)

    def location(self, task: DataTask, position: Position) -> dict[str, str | int]:
        return segment_location(task.ranges[position.part].path, position.row)

    def _segments(self) -> _Segments:
        return _Segments.of(self._files.listing())

    def _nothing(self) -> str:
        listing = self._files.listing()
        return f"there is no segment PARTITION/*.arrow: {self._files.lies_there(listing)}"

    def _schema(self, path: str) -> pa.Schema:
        return SegmentFile(self._files.full(path)).schema

    def _check_offsets(self, segments: _Segments) -> None:
        names = np.asarray(segments.partitions.to_pylist())
        same = np.zeros(len(names), np.bool_)
        same[1:] = names[1:] == names[:-1]
        expected = segments.base.copy()
        expected[1:] = np.where(same[1:], (segments.base + segments.rows)[:-1], expected[1:])
        wrong = np.flatnonzero(expected != segments.base)
        if len(wrong):
            at = int(wrong[0])
            what = "a gap" if segments.base[at] > expected[at] else "an overlap"
            raise DataError(
                f"source {self.spec.name!r}: partition {names[at]} has {what}: the next segment "
                f"after offset {expected[at]} is {segments.listing.paths[at].as_py()} "
                "(put the missing segments back)"
            )


def _by_partition(segments: _Segments) -> Iterator[Partition]:
    """In the order of their names, which is not that of paths: `eu-1/` comes before `eu/`."""
    names, firsts, counts = np.unique(
        np.asarray(segments.partitions.to_pylist()), return_index=True, return_counts=True
    )
    for name, first, count in zip(names, firsts, counts, strict=True):
        at = np.arange(first, first + count)
        yield Partition(str(name), segments.base[at], segments.rows[at], segments.commit_us[at], at)


def _span_of(partition: Partition, borders: LogBorders, spans: Sequence[Interval]) -> Ints:
    """The span of each segment of a partition; -1 outside all of them."""
    found = np.full(len(partition.base), -1, np.int64)
    for index, span in enumerate(spans):
        first, end = borders.offsets(partition.name, span)
        found[np.searchsorted(partition.base, first) : np.searchsorted(partition.base, end)] = index
    return found
