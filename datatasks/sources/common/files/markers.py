"""Markers: files that say that the hours or days of a span are complete."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from datetime import timedelta
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.specs.windows import Interval
from forebay.datatasks.sources.common.contract.base import Readiness, Source, ended
from forebay.datatasks.sources.common.files.listing import Files
from forebay.datatasks.sources.common.files.path_times import matching
from forebay.datatasks.sources.common.files.patterns import TimePattern, glob_regex, has_magic


class MarkerSource(Source):
    """A source that `ready.marker` says to be complete; without a marker the clock does."""

    # How long after its end a span's last rows may still arrive.
    close_delay = timedelta(0)

    def readiness(self, span: Interval) -> Readiness:
        return self.readiness_of([span])[0]

    def readiness_of(self, spans: Sequence[Interval]) -> list[Readiness]:
        marker = self.spec.ready.marker
        if marker is None or not spans:
            return [ended(span, self.close_delay) for span in spans]
        return self.marked(spans, marker)

    @abstractmethod
    def marked(self, spans: Sequence[Interval], marker: str) -> list[Readiness]:
        """What the storage's markers say of each span; there is at least one."""


class Markers:
    """One look at the markers below a folder, for any number of spans.

    Every folder is asked for once, and where its name has to be searched for there is one
    listing, so that many windows of a backfill cost as much as their folders.
    """

    def __init__(self, files: Files, pattern: TimePattern | None, marker: str) -> None:
        """Look at nothing yet. Without a pattern the marker is in the source's folder."""
        self._files = files
        self._pattern = pattern
        self._marker = marker
        self._there: dict[str, bool] = {}

    def lacking(self, span: Interval) -> str | None:
        """A folder of the span without the marker; None when all have it."""
        if self._pattern is None:
            return None if self._is_marked("") else ""
        pieces = self._pattern.folders(span.start, span.end)
        if not has_magic(self._pattern.folder):
            lacking = (ways for ways in pieces if not any(map(self._is_marked, ways)))
            return next(map(self._as_there, lacking), None)
        for ways in pieces:
            regex = "|".join(map(glob_regex, ways))
            names = self._folders.take(pa.array(matching(self._folders, regex))).to_pylist()
            absent = [name for name in names if f"{name}/{self._marker}" not in self._marked]
            if absent or not names:
                return absent[0] if absent else ways[0]
        return None

    def _as_there(self, ways: list[str]) -> str:
        """A folder as it is written; with leading zeros where it is not there."""
        return next((way for way in ways[1:] if self._files.exists(way)), ways[0])

    def _is_marked(self, folder: str) -> bool:
        if folder not in self._there:
            self._there[folder] = self._files.exists(f"{folder}/{self._marker}".lstrip("/"))
        return self._there[folder]

    @cached_property
    def _paths(self) -> pa.Array:
        return self._files.listing(hidden=True).paths

    @cached_property
    def _folders(self) -> pa.Array:
        return pc.unique(pc.replace_substring_regex(self._paths, r"/?[^/]*$", ""))

    @cached_property
    def _marked(self) -> set[str]:
        ends = pc.ends_with(self._paths, f"/{self._marker}")
        return set(self._paths.filter(ends).to_pylist())
