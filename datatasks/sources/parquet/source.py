"""Kind `parquet`: files below a folder, cut by the time in their paths or by a column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.specs.base import Spec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import HOUR, Interval
from forebay.datatasks.sources.common.contract.base import (
    Describes,
    Description,
    Finding,
    Readiness,
    Scan,
)
from forebay.datatasks.sources.common.files.bundles import fingerprints, to_tasks
from forebay.datatasks.sources.common.files.listing import Files, Listing
from forebay.datatasks.sources.common.files.markers import Markers, MarkerSource
from forebay.datatasks.sources.common.files.path_times import (
    first_unreal,
    matching,
    path_span,
    path_times,
    span_folders,
)
from forebay.datatasks.sources.common.files.patterns import TimePattern, has_magic, time_pattern
from forebay.datatasks.sources.common.files.versions import PlannedFile, plan_again
from forebay.datatasks.sources.common.values.casting import column_findings
from forebay.datatasks.sources.common.values.times import Spans, Times
from forebay.datatasks.sources.parquet.footer_cache import FooterCache
from forebay.datatasks.sources.parquet.footer_process import KNOWN
from forebay.datatasks.sources.parquet.footers import (
    Footer,
    RowGroups,
    read_footers,
    read_schemas,
    with_footers,
)
from forebay.datatasks.sources.parquet.kind import ParquetKind
from forebay.datatasks.sources.parquet.open_files import FileKeeper
from forebay.datatasks.sources.parquet.plan import Candidates, ParquetPlanner
from forebay.datatasks.sources.parquet.read import Bounds, ParquetReader
from forebay.datatasks.tasks import Chunk, DataTask, Position, ReadUnit, RowRange
from forebay.errors import DataError
from forebay.system.instants import shown_instant
from forebay.system.output.counted import counted

_NEWEST_FILES = 16
_PARTITIONS_SHOWN = 1000
_MOVE_AWAY = "move it away, or narrow `path`"


class ParquetSource(ParquetKind, MarkerSource, Describes):
    """Parquet files below one folder (see `ParquetKind.Options`).

    Complete: with `ready.marker`, when the marker is in the folder of every hour or day of the
    span (`window_path`), or in the source's folder; otherwise when the clock has passed the span.
    """

    options: ParquetKind.Options

    def __init__(self, spec: SourceSpec, options: Spec, root: Path) -> None:
        super().__init__(spec, options, root)
        storage = self.options.storage.model_dump(exclude_none=True)
        self._files = Files(self.options.path, root, storage, ".parquet")
        window_path = self.options.window_path
        self._keeper = FileKeeper(self._files.opened)
        self._row_groups = RowGroups(self._files.opened)
        self._pattern = None if window_path is None else time_pattern(window_path)

    @property
    def cut(self) -> str:
        if self._pattern is None:
            return super().cut
        step = "hour" if self._pattern.step == HOUR else "day"
        column = f" and {super().cut}" if self.spec.event_time else ""
        return f"the {step} in their path{column}"

    def describe(self) -> Description:
        listing = self._files.listing()
        matched = self._matched(listing)
        if not len(matched):
            return Description({}, empty_reason=self._nothing(listing))
        newest = matched.paths[len(matched) - 1].as_py()
        (schema,) = self._schemas([newest])
        if isinstance(schema, str):
            return Description({}, empty_reason=self._unreadable(newest, schema))
        folders = pc.unique(pc.replace_substring_regex(matched.paths, r"/?[^/]*$", ""))
        return Description(
            {field.name: str(field.type) for field in schema},
            [folder or "." for folder in folders.slice(0, _PARTITIONS_SHOWN).to_pylist()],
            self._newest(matched),
        )

    def findings(self) -> list[Finding]:
        listing = self._files.listing()
        matched = self._matched(listing)
        if not len(matched):
            hint = "correct `path`; an empty folder is fine once `starts` says when rows begin"
            return [Finding(("options", "path"), "nothing-matched", self._nothing(listing), hint)]
        if self._pattern is not None:
            try:
                self._path_times(matched, self._pattern)
            except DataError as error:
                place = ("options", "window_path")
                return [Finding(place, "no-time-in-path", str(error), _MOVE_AWAY)]
        found: dict[tuple[str, ...], Finding] = {}
        paths = [matched.paths[index].as_py() for index in sorted({0, len(matched) - 1})]
        for path, schema in zip(paths, self._schemas(paths), strict=True):
            for finding in self._file_findings(path, schema):
                found.setdefault(finding.path, finding)
        return list(found.values())

    def marked(self, spans: Sequence[Interval], marker: str) -> list[Readiness]:
        markers = Markers(self._files, self._pattern, marker)
        return [self._readiness(markers.lacking(span), marker) for span in spans]

    def _readiness(self, lacking: str | None, marker: str) -> Readiness:
        if lacking is None:
            return Readiness(ready=True)
        return Readiness(ready=False, reason=f"there is no {marker} in {self._files.full(lacking)}")

    def scan(self, spans: Sequence[Interval]) -> Scan:
        before = self._files.calls
        listing = self._files.listing()
        matched = self._matched(listing)
        self._files.require_one_name(matched)
        # An empty folder is fine once `starts` is declared; a place that is wrong never is.
        may_be_empty = self.spec.starts is not None and not len(listing)
        if not len(matched) and not (may_be_empty and self._files.exists("")):
            raise DataError(
                f"source {self.spec.name!r}: {self._nothing(listing)} (correct `path`; an empty "
                "folder is fine once `starts` says when rows begin)"
            )
        return self._planned(spans, matched, before)

    def look(self, spans: Sequence[Interval]) -> Scan:
        folders = None if self._pattern is None else span_folders(self._pattern, spans)
        if folders is None:
            return self.scan(spans)
        before = self._files.calls
        return self._planned(spans, self._matched(self._files.listing(folders)), before)

    def _planned(self, spans: Sequence[Interval], matched: Listing, before: int) -> Scan:
        files, event_time, bounds = self._files, self.spec.event_time, Spans(spans)
        chosen, low, high = self._near(matched, bounds)
        footers = FooterCache(self.cache, files, event_time).footers(matched, chosen)
        planner = ParquetPlanner(files.opened, event_time, self.spec.bad_rows, files.full)
        ranges = planner.ranges(Candidates(chosen.paths, footers, low, high), bounds)
        files.calls += planner.reads
        versions = with_footers(chosen.versions, footers)
        salt = f"{event_time}|{self.options.window_path}"
        return Scan(
            to_tasks(ranges, chosen.paths, versions=versions),
            fingerprints(len(spans), ranges, chosen.paths, versions, salt),
            files.calls - before,
        )

    def open(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        reader = ParquetReader(self.spec, self._keeper, self._planned_file, self._bounds)
        return reader.read(task, position, columns, chunk_rows)

    def close(self) -> None:
        self._keeper.close()
        super().close()

    def units(self, task: DataTask, position: Position) -> Iterator[ReadUnit]:
        return self._row_groups.units(task, position)

    def location(self, task: DataTask, position: Position) -> dict[str, str | int]:
        return self._row_groups.location(task.ranges[position.part].path, position.row)

    def _planned_file(self, row_range: RowRange, window: str) -> PlannedFile:
        path = row_range.path
        return PlannedFile(
            self._files.full(path),
            row_range.version,
            lambda: self._files.version(path),
            plan_again(window),
        )

    def _matched(self, listing: Listing) -> Listing:
        """Files that the place means; markers of folders in buckets end with a slash."""
        found = listing.take(matching(pc.utf8_rtrim(listing.paths, "/"), self._files.regex))
        is_folder = np.asarray(pc.ends_with(found.paths, "/")).astype(np.bool_)
        odd = np.flatnonzero(is_folder & (found.sizes > 0))
        if len(odd):
            key = self._files.full(found.paths[int(odd[0])].as_py())
            raise DataError(
                f"source {self.spec.name!r}: {counted(len(odd), 'key')} with content end with a "
                f"slash, which no file system opens: the first is {key} (rename it, or narrow "
                "`path`)"
            )
        return found.take(np.flatnonzero(~is_folder))

    def _nothing(self, listing: Listing) -> str:
        pattern = self.options.path
        wanted = pattern if has_magic(pattern) else f"{pattern} (*.parquet below it)"
        return f"nothing matches {wanted}: {self._files.lies_there(listing)}"

    def _path_times(self, matched: Listing, pattern: TimePattern) -> tuple[Times, Times]:
        """The times that paths name; DataError with a sentence about one that names none."""
        timed = matching(matched.paths, pattern.regex)
        if len(timed) < len(matched):
            stray = int(np.setdiff1d(np.arange(len(matched)), timed)[0])
            path = self._files.full(matched.paths[stray].as_py())
            window_path = self.options.window_path
            raise DataError(f"the path of {path} does not fit window_path {window_path!r}")
        try:
            return path_times(matched.paths, pattern)
        except pa.ArrowInvalid as error:
            path = self._files.full(first_unreal(matched.paths, pattern))
            raise DataError(f"the path of {path} names no day or hour that exists") from error

    def _near(self, matched: Listing, spans: Spans) -> tuple[Listing, Times | None, Times | None]:
        """Files that may hold rows of the spans, and the times that their paths name."""
        if self._pattern is None:
            return matched, None, None
        try:
            low, high = self._path_times(matched, self._pattern)
        except DataError as error:
            raise DataError(f"source {self.spec.name!r}: {error} ({_MOVE_AWAY})") from error
        chosen = np.flatnonzero(spans.overlaps(low, high - 1))
        return matched.take(chosen), low[chosen], high[chosen]

    def _bounds(self, path: str) -> Bounds | None:
        return None if self._pattern is None else path_span(path, self._pattern)

    def _schemas(self, paths: Sequence[str]) -> list[pa.Schema | str]:
        return read_schemas(paths, self._files.opened, self._files.full)

    def _unreadable(self, path: str, reason: str) -> str:
        return f"{self._files.full(path)} cannot be read: {reason}"

    def _file_findings(self, path: str, schema: pa.Schema | str) -> Iterator[Finding]:
        if isinstance(schema, str):
            broken = self._unreadable(path, schema)
            yield Finding(("options", "path"), "unreadable", broken, "repair or remove the file")
            return
        yield from column_findings(schema, self.spec.columns, self._files.full(path))

    def _newest(self, matched: Listing) -> datetime | None:
        """Latest event time in the last files by path and by change."""
        last = matched.take(np.arange(max(0, len(matched) - _NEWEST_FILES), len(matched)))
        try:
            if self._pattern is not None:
                return shown_instant(int(self._path_times(last, self._pattern)[1].max()))
            if self.spec.event_time is None:
                return None
            footers = read_footers(
                last.paths.to_pylist(), self._files.opened, self._files.full, self.spec.event_time
            )
        except DataError:
            return None  # `findings` names the path, or the missing column
        known = [
            int(footer.high[footer.state == KNOWN].max())
            for footer in footers
            if isinstance(footer, Footer) and (footer.state == KNOWN).any()
        ]
        return shown_instant(max(known)) if known else None
