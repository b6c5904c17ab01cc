"""A source of files below one folder, cut by the time in their paths or by a column."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.specs.base import Spec
from forebay.config.specs.sources import ColumnType, SourceSpec
from forebay.config.specs.windows import HOUR, Interval
from forebay.datatasks.sources.common.contract.base import (
    Describes,
    Description,
    Finding,
    Readiness,
    Scan,
)
from forebay.datatasks.sources.common.files.bundles import fingerprints, to_tasks
from forebay.datatasks.sources.common.files.folder_kind import FolderKind, FolderOptions
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
from forebay.datatasks.sources.common.files.versions import FOOTER, PlannedFile, plan_again
from forebay.datatasks.sources.common.row_groups.footer_cache import FooterCache
from forebay.datatasks.sources.common.row_groups.planner import Candidates, Footer, RangePlanner
from forebay.datatasks.sources.common.row_groups.states import KNOWN
from forebay.datatasks.sources.common.values.casting import column_findings, column_problem
from forebay.datatasks.sources.common.values.times import Spans, Times
from forebay.datatasks.tasks import RowRange
from forebay.errors import DataError
from forebay.system.instants import shown_instant
from forebay.system.output.counted import counted

_PARTITIONS_SHOWN = 1000
_MOVE_AWAY = "move it away, or narrow `path`"
Bounds = tuple[int, int]


class FolderSource(FolderKind, MarkerSource, Describes):
    """Files below one folder (see `FolderOptions`).

    Complete: with `ready.marker`, when the marker is in the folder of every hour or day of the
    span (`window_path`), or in the source's folder; otherwise when the clock has passed the span.

    newest_files: how many of the last ones are asked for the newest time. has_footers: whether the
    times in a file are known without reading all of it.
    """

    options: FolderOptions
    newest_files: ClassVar[int] = 16
    has_footers: ClassVar[bool] = True

    def __init__(self, spec: SourceSpec, options: Spec, root: Path) -> None:
        super().__init__(spec, options, root)
        storage = self.options.storage.model_dump(exclude_none=True)
        self._files = Files(self.options.path, root, storage, self.suffixes)
        window_path = self.options.window_path
        self._pattern = None if window_path is None else time_pattern(window_path)

    @abstractmethod
    def read_footers(self, paths: Sequence[str]) -> list[Footer | str]:
        """Of each file, or the reason why it cannot be read."""

    @abstractmethod
    def read_schemas(self, paths: Sequence[str]) -> list[pa.Schema | str]:
        """The columns of each file, or the reason why they cannot be read."""

    @abstractmethod
    def planner(self) -> RangePlanner:
        """What says which rows belong to which span."""

    def column_problem(self, schema: pa.Schema, name: str, declared: ColumnType) -> str:
        """What is wrong with a declared column in a file's columns; empty when nothing is."""
        return column_problem(schema, name, declared)

    @property
    def meaning(self) -> str:
        """What decides, beside the files, what their footers say."""
        return str(self.spec.event_time)

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
        (schema,) = self.read_schemas([newest])
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
        for path, schema in zip(paths, self.read_schemas(paths), strict=True):
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
        files, bounds = self._files, Spans(spans)
        chosen, low, high = self._near(matched, bounds)
        cache = FooterCache(self.cache, files, self.read_footers, self.meaning)
        footers = cache.footers(matched, chosen)
        planner = self.planner()
        ranges = planner.ranges(Candidates(chosen.paths, footers, low, high), bounds)
        files.calls += planner.reads
        versions = with_footers(chosen.versions, footers)
        salt = f"{self.meaning}|{self.options.window_path}"
        return Scan(
            to_tasks(ranges, chosen.paths, versions=versions),
            fingerprints(len(spans), ranges, chosen.paths, versions, salt),
            files.calls - before,
        )

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
        ends = ", ".join(f"*{end}" for end in self.suffixes)
        wanted = pattern if has_magic(pattern) else f"{pattern} ({ends} below it)"
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

    def _unreadable(self, path: str, reason: str) -> str:
        return f"{self._files.full(path)} cannot be read: {reason}"

    def _file_findings(self, path: str, schema: pa.Schema | str) -> Iterator[Finding]:
        if isinstance(schema, str):
            broken = self._unreadable(path, schema)
            yield Finding(("options", "path"), "unreadable", broken, "repair or remove the file")
            return
        place = self._files.full(path)
        yield from column_findings(schema, self.spec.columns, place, self.column_problem)

    def _newest(self, matched: Listing) -> datetime | None:
        """Latest event time in the last files by path."""
        last = matched.take(np.arange(max(0, len(matched) - self.newest_files), len(matched)))
        try:
            if self._pattern is not None:
                return shown_instant(int(self._path_times(last, self._pattern)[1].max()))
            if self.spec.event_time is None:
                return None
            footers = self.read_footers(last.paths.to_pylist())
        except DataError:
            return None  # `findings` names the path, or the missing column
        known = [
            int(footer.high[footer.state == KNOWN].max())
            for footer in footers
            if isinstance(footer, Footer) and (footer.state == KNOWN).any()
        ]
        return shown_instant(max(known)) if known else None


def with_footers(versions: pa.Array, footers: Sequence[Footer | str]) -> pa.Array:
    """Versions of files with the digests of their footers."""
    digests = [each.digest if isinstance(each, Footer) else "" for each in footers]
    texts = pa.array([f"|{FOOTER}={digest}" if digest else "" for digest in digests], pa.string())
    return pc.binary_join_element_wise(versions, texts, "")
