"""Scores and labels on disk: append-only Arrow IPC segments, sealed together with a checkpoint.

Rows of a stream are written with the scores they got before the step that used them, rows of
batch sources with their complete label, both with when they happened and whose they are. Where
nothing is scored, as in a warm start, rows of a stream are kept as they were published. A segment
that no checkpoint sealed is dropped at restore, as the steps after it are, so scores and model
always cover the same rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import ipc

from forebay.errors import DataError
from forebay.mixture.minibatch import Minibatch
from forebay.system.files import make_folder, sync, writing

_Columns = Mapping[str, tuple[pa.DataType, float]]
SCORES_FOLDER = "scores"
_SCORES, _LABELS, _PUBLISHED = "scores", "labels", "published"
_ROWS_IN_MEMORY = 8_192
_PREFIX = "score:"
# What a segment says of each row beside ids, labels and scores; segments of earlier versions do
# not, and are read as if nobody knew: the type of each column, and the value that says so.
_TIME: _Columns = {"event_time": (pa.int64(), np.iinfo(np.int64).min)}
_WAIT: _Columns = {"wait": (pa.float32(), np.nan)}
_SOURCE: _Columns = {"source": (pa.int32(), -1)}
_ADDED = {
    _SCORES: {**_TIME, **_WAIT, **_SOURCE},
    _LABELS: {**_TIME, **_SOURCE},
    _PUBLISHED: {**_TIME, **_WAIT, **_SOURCE},
}


class _Segment:
    """One growing file of one kind; its records are gathered to a size that is worth writing."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self._schema = schema
        with writing(path):
            self._sink = pa.OSFile(str(path), "wb")
            self._writer = ipc.new_file(self._sink, schema)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def append(self, columns: Sequence[npt.NDArray[Any]]) -> None:
        arrays = [pa.array(column) for column in columns]
        self._waiting.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._rows += len(arrays[0])
        if self._rows >= _ROWS_IN_MEMORY:
            self._write()

    def _write(self) -> None:
        if self._waiting:
            table = pa.Table.from_batches(self._waiting).combine_chunks()
            with writing(self.path):
                self._writer.write_table(table)
        self._waiting, self._rows = [], 0

    def close(self) -> None:
        self._write()
        with writing(self.path):
            self._writer.close()
            self._sink.close()
        sync(self.path)


class ScoreWriter:
    """Writes one window's scores and labels into `folder`. Not safe for several threads."""

    def __init__(self, folder: Path, paradigms: Sequence[str]) -> None:
        """Create the folder; nothing in it is touched before `restore`."""
        self._folder = folder
        self._schemas = {
            _SCORES: pa.schema(
                [("event_id", pa.int64()), ("fresh", pa.float32()), *_fields(_SCORES)]
                + [(_PREFIX + name, pa.float32()) for name in paradigms]
            ),
            _LABELS: pa.schema(
                [("event_id", pa.int64()), ("complete", pa.float32()), *_fields(_LABELS)]
            ),
            _PUBLISHED: pa.schema(
                [("event_id", pa.int64()), ("fresh", pa.float32()), *_fields(_PUBLISHED)]
            ),
        }
        self._paradigms = len(paradigms)
        self._open: dict[str, _Segment] = {}
        self._sealed: list[str] = []
        self._next = 0
        make_folder(folder)

    def append(self, minibatch: Minibatch, scores: npt.NDArray[np.float32] | None) -> None:
        """Keep stream rows with their scores (float32[N, paradigms]), or batch rows with None.

        Raises:
            ValueError: when the scores' shape does not fit.
        """
        known: list[npt.NDArray[Any]] = [minibatch.event_ids, minibatch.labels]
        times = _or_unknown(minibatch.event_times, len(minibatch), _TIME)
        if scores is None:
            self._segment(_LABELS).append([*known, times, minibatch.sources])
            return
        if scores.shape != (len(minibatch), self._paradigms):
            raise ValueError(f"scores of shape {scores.shape} for {len(minibatch)} rows")
        waits = _or_unknown(minibatch.waits, len(minibatch), _WAIT)
        self._segment(_SCORES).append(
            [*known, times, waits, minibatch.sources, *np.ascontiguousarray(scores.T)]
        )

    def append_published(self, minibatch: Minibatch) -> None:
        """Keep stream rows that nothing scores."""
        times = _or_unknown(minibatch.event_times, len(minibatch), _TIME)
        waits = _or_unknown(minibatch.waits, len(minibatch), _WAIT)
        self._segment(_PUBLISHED).append(
            [minibatch.event_ids, minibatch.labels, times, waits, minibatch.sources]
        )

    def seal(self) -> list[str]:
        """Make everything appended so far durable; the names of all sealed segments."""
        for segment in self._open.values():
            segment.close()
            self._sealed.append(segment.path.name)
        sync(self._folder)
        self._open = {}
        return list(self._sealed)

    def restore(self, sealed: Sequence[str]) -> None:
        """Drop every segment that is not in `sealed` and continue after those.

        Raises:
            DataError: when a sealed segment is missing, or has no end.
        """
        self._open = {}
        for path in self._folder.glob("*.arrow"):
            if path.name not in sealed:
                path.unlink()
        missing = [name for name in sealed if not (self._folder / name).exists()]
        if missing:
            raise DataError(f"{self._folder}: sealed segment {missing[0]} is missing")
        for name in sealed:
            with _reading(self._folder / name):
                pass
        self._sealed = list(sealed)
        self._next = 1 + max((_number(name) for name in sealed), default=-1)

    def _segment(self, kind: str) -> _Segment:
        if kind not in self._open:
            path = self._folder / f"{kind}-{self._next:06d}.arrow"
            self._open[kind] = _Segment(path, self._schemas[kind])
            self._next += 1
        return self._open[kind]


@dataclass(frozen=True)
class Segments:
    """The segments of one trained window, in a folder; None where it has no rows with scores."""

    window: str
    folder: Path | None

    def scores(self) -> pa.Table | None:
        """Event ids, fresh labels, times, waits, sources and scores in the order written.

        None when there are none.
        """
        return self._read(_SCORES)

    def published(self) -> pa.Table | None:
        """As `scores`, without the scores; rows that nothing scored too."""
        columns = ["event_id", "fresh", *_ADDED[_PUBLISHED]]
        found = [self._read(kind, columns) for kind in (_PUBLISHED, _SCORES)]
        tables = [table for table in found if table is not None]
        return pa.concat_tables(tables).combine_chunks() if tables else None

    def labels(self) -> pa.Table | None:
        """Event ids, complete labels, times and sources in the order written; None without any."""
        return self._read(_LABELS)

    def _read(self, kind: str, columns: Sequence[str] | None = None) -> pa.Table | None:
        tables = [_read_segment(path, kind) for path in self._paths(kind)]
        if columns is not None:
            tables = [table.select(columns) for table in tables]
        return pa.concat_tables(tables).combine_chunks() if tables else None

    def _paths(self, kind: str) -> Iterator[Path]:
        if self.folder is not None:
            yield from sorted(self.folder.glob(f"{kind}-*.arrow"))


def paradigms_of(scores: pa.Table) -> tuple[str, ...]:
    """Paradigms whose scores a table holds, the serving one first."""
    names = [name for name in scores.column_names if name.startswith(_PREFIX)]
    return tuple(name.removeprefix(_PREFIX) for name in names)


def score_matrix(scores: pa.Table) -> npt.NDArray[np.float32]:
    """Scores as float32[N, paradigms]."""
    matrix = np.empty((scores.num_rows, len(paradigms_of(scores))), dtype=np.float32)
    for index, name in enumerate(paradigms_of(scores)):
        matrix[:, index] = scores.column(_PREFIX + name).to_numpy()
    return matrix


def _fields(kind: str) -> list[tuple[str, pa.DataType]]:
    return [(name, kind_of) for name, (kind_of, _) in _ADDED[kind].items()]


def _or_unknown(values: npt.NDArray[Any] | None, rows: int, column: _Columns) -> npt.NDArray[Any]:
    if values is not None:
        return values
    ((stored, unknown),) = column.values()
    return np.full(rows, unknown, stored.to_pandas_dtype())


def _read_segment(path: Path, kind: str) -> pa.Table:
    with _reading(path) as segment:
        found = segment.read_all()
    for place, (name, column) in enumerate(_ADDED[kind].items(), start=2):
        if name not in found.column_names:
            values = _or_unknown(None, found.num_rows, {name: column})
            found = found.add_column(place, pa.field(name, column[0]), [values])
    return found


@contextmanager
def _reading(path: Path) -> Iterator[ipc.RecordBatchFileReader]:
    try:
        with pa.memory_map(str(path)) as source:
            yield ipc.open_file(source)
    except (pa.ArrowInvalid, FileNotFoundError) as error:
        raise DataError(
            f"{path}: a sealed score segment cannot be read: {error}: restore it, or train its "
            "window again (--reprocess)"
        ) from error


def _number(name: str) -> int:
    return int(name.removesuffix(".arrow").rpartition("-")[2])
