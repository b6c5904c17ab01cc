"""Kinds `json`, `csv` and `tfrecord`: files of records below a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from forebay.config.specs.base import Spec
from forebay.config.specs.sources import ColumnType, SourceSpec
from forebay.datatasks.sources.common.files.listing import arrow_file, read_failure
from forebay.datatasks.sources.common.row_groups.folder import FolderSource
from forebay.datatasks.sources.common.row_groups.planner import Footer, RangePlanner, no_times
from forebay.datatasks.sources.common.row_groups.states import ALL_NULL, KNOWN, TO_READ
from forebay.datatasks.sources.common.values.casting import column_problem
from forebay.datatasks.sources.common.values.times import UNKNOWN, Times
from forebay.datatasks.sources.records.blocks import Block, Ints, Records
from forebay.datatasks.sources.records.csv_lines import CsvLines
from forebay.datatasks.sources.records.json_lines import JsonLines
from forebay.datatasks.sources.records.kind import TSV, CsvKind, JsonKind, TfrecordKind
from forebay.datatasks.sources.records.read import RecordFile, RecordReader, shifts
from forebay.datatasks.sources.records.streams import compression_of, pieces
from forebay.datatasks.tasks import Chunk, DataTask, Position, ReadUnit
from forebay.errors import DataError, InfrastructureError
from forebay.system.extras import require_extra

_THREADS = 4
_SAMPLE_ROWS = 1000
_NEVER = np.iinfo(np.int64).max
_RECORD_OPTIONS = {"delimiter", "names", "nulls", "list_separator", "compression"}


class _RecordPlanner(RangePlanner):
    """A file is one row group."""

    group = ""

    def __init__(self, source: RecordSource) -> None:
        spec = source.spec
        super().__init__(spec.event_time, spec.bad_rows, source.place)
        self._source = source

    def close(self) -> None:
        """No file stays open."""

    def no_times(self, path: str) -> str:
        return self._source.no_times(path)

    def group_times(self, path: str, group: int, bounds: tuple[int, int] | None) -> Times:
        del group, bounds  # the file itself says more
        with self._source.opened(path, [], with_times=True) as file:
            found = [file.cut_times(file.times(block)) for block in file.blocks]
            return np.concatenate([np.zeros(0, np.int64), *found])  # it may be empty by now


class RecordSource(FolderSource):
    """Files of records without a footer.

    Planning reads each file once, and again those that cross the border of a window; what it finds
    is kept like footers. Where paths say the time, it counts records and decodes none.
    """

    records: ClassVar[type[Records]]
    newest_files = 1
    has_footers = False

    def __init__(self, spec: SourceSpec, options: Spec, root: Path) -> None:
        super().__init__(spec, options, root)
        self._compression = cast("JsonKind.Options", options).compression
        self._places = lru_cache(1)(self._look)  # `units` asks about each record

    @property
    def meaning(self) -> str:
        written = self.options.model_dump(include=_RECORD_OPTIONS)
        counted_only = self._pattern is not None
        return json.dumps([self.name, self.spec.event_time, counted_only, written])

    def place(self, path: str) -> str:
        """The full name of a path."""
        return self._files.full(path)

    @contextmanager
    def opened(
        self, path: str, columns: Sequence[str], *, with_times: bool
    ) -> Iterator[RecordFile]:
        """A file, to be read for some columns, and for the event time where there is one."""
        event_time = self.spec.event_time if with_times else None
        names = dict.fromkeys([*columns, *([] if event_time is None else [event_time])])
        records = self.records(list(names), self.spec.columns, self.options_of(path))
        compression = self._compression or compression_of(path)
        with self._files.opened(path) as handle, closing(arrow_file(handle)) as file:
            blocks = self._blocks(path, records, pieces(file, compression))
            bounds = self._bounds(path)
            yield RecordFile(records, blocks, event_time, bounds, lambda: self._first_time(path))

    def options_of(self, path: str) -> Spec:
        """Where the name of a file says some of them."""
        del path
        return self.options

    def _blocks(self, path: str, records: Records, found: Iterator[bytes]) -> Iterator[Block]:
        try:
            yield from records.blocks(found)
        except DataError as error:
            way_out = f"rewrite the file, or correct source {self.spec.name!r}"
            raise DataError(f"{self.place(path)}: {error} ({way_out})") from error

    def _first_time(self, path: str) -> int | None:
        with self.opened(path, [], with_times=True) as file:
            for block in file.blocks:
                times = file.times(block)
                if (known := times[times != UNKNOWN]).size:
                    return int(known[0])
        return None

    def read_footers(self, paths: Sequence[str]) -> list[Footer | str]:
        with ThreadPoolExecutor(_THREADS) as pool:
            return list(pool.map(self._footer, paths))

    def _footer(self, path: str) -> Footer:
        rows = size = 0
        low, high = _NEVER, UNKNOWN
        with self._readable(path), self.opened(path, [], with_times=self._pattern is None) as file:
            for block in file.blocks:
                rows, size = block.end, size + len(block.data)
                if file.event_time is not None:
                    times = file.times(block)
                    known = times[times != UNKNOWN]
                    low, high = known.min(initial=low), known.max(initial=high)
        state = TO_READ if self._pattern else KNOWN if low <= high else ALL_NULL
        if state != KNOWN:
            low = high = UNKNOWN
        values = [rows, size, low, high, state] if rows else []
        return Footer(*np.array(values, np.int64).reshape(5, -1))

    @contextmanager
    def _readable(self, path: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            place = self.place(path)
            raise read_failure(error, place) or InfrastructureError(f"{place}: {error}") from error

    def no_times(self, path: str) -> str:
        """Why no record of a file has a time: the first ones are all bad, or say none."""
        found = self._schema(path)
        return found if isinstance(found, str) else no_times(self.spec.event_time)

    def read_schemas(self, paths: Sequence[str]) -> list[pa.Schema | str]:
        return [self._schema(path) for path in paths]

    def _schema(self, path: str) -> pa.Schema | str:
        try:
            with self._readable(path), self.opened(path, [], with_times=False) as file:
                for block in file.blocks:
                    some = block.part(0, min(_SAMPLE_ROWS, len(block)))
                    bad = file.records.decode_all(some).bad
                    good = [each for row, each in enumerate(some.values()) if row not in bad]
                    return file.records.stored_schema(good) if good else bad[0]
                return pa.schema([])
        except ValueError as error:  # such as names that are no texts
            return str(error)

    def column_problem(self, schema: pa.Schema, name: str, declared: ColumnType) -> str:
        if not len(schema):  # of a file without records
            return ""
        index = schema.get_field_index(name)
        if index < 0:
            return column_problem(schema, name, declared)
        stored = schema.field(index).type
        if pat.is_null(stored) or self.records.fits(stored, declared):
            return ""
        return f"column {name!r} is stored as {stored}, which cannot be read as {declared.value}"

    def planner(self) -> RangePlanner:
        return _RecordPlanner(self)

    def open(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        reader = RecordReader(self.spec, self.opened, self._planned_file, self.no_times)
        return reader.read(task, position, columns, chunk_rows)

    def units(self, task: DataTask, position: Position) -> Iterator[ReadUnit]:
        locate = partial(self._location, task)
        return ReadUnit.of_ranges(task, position, locate, lambda r: range(r.first + 1, r.end))

    def _location(self, task: DataTask, at: Position) -> dict[str, str | int]:
        """Also as people count, but where a window cuts: that may be lost from any row on."""
        each = task.ranges[at.part]
        if each.rows != each.end - each.first:
            return self.location(task, at)
        word, rows, more = self._places(each.path)
        place = at.row + int(more[np.searchsorted(rows, at.row, side="right") - 1])
        return {"file": each.path, word: place, "row": at.row}

    def _look(self, path: str) -> tuple[str, Ints, Ints]:
        """The word for places in a file, and what they are; see `shifts`."""
        with self.opened(path, [], with_times=False) as file:
            return file.records.place, *shifts(file)


class JsonSource(JsonKind, RecordSource):
    """Files of JSON lines."""

    records = JsonLines


class CsvSource(CsvKind, RecordSource):
    """Files of fields."""

    options: CsvKind.Options
    records = CsvLines

    def options_of(self, path: str) -> Spec:
        delimiter = self.options.delimiter or ("\t" if path.endswith(TSV) else ",")
        return self.options.model_copy(update={"delimiter": delimiter})


class TfrecordSource(TfrecordKind, RecordSource):
    """TFRecord files."""

    @property
    def records(self) -> type[Records]:  # type: ignore[override]
        """Imported when it is wanted: its libraries are an extra."""
        require_extra("tfrecord")
        from forebay.datatasks.sources.records.tf_examples import TfExamples

        return TfExamples
