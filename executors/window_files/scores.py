"""Scores and labels on disk: append-only Arrow IPC segments, sealed together with a checkpoint.

Rows of a stream are written with the scores they got before the step that used them, rows of
batch sources with their complete label, both with their event time and source. Where nothing is
scored, as in a warm start, rows of a stream are kept as they were published. A segment that no
checkpoint sealed is dropped at restore, like the steps after it, so scores and model always cover
the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import ipc

from forebay.errors import DataError
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.score_columns import ScoreColumn
from forebay.system.files.durable import make_folder, sync, writing

# The first label has the columns of a single one: `fresh` and `held`, or `complete`, and
# `score:mixture`. Those of a further one are `fresh:sale`, `held:sale`, `complete:sale` and
# `score:sale:mixture`.

SCORE_PREFIX = "score:"
FRESH, COMPLETE, HELD = "fresh", "complete", "held"


def label_column(column: str, label: str) -> str:
    """The column with `fresh`, `held` or `complete` of a label; "" is the first."""
    return f"{column}:{label}" if label else column


def of_label(table: pa.Table, label: str, *, every_row: bool) -> pa.Table:
    """The part of a segment for one label ("" is the first), as if there were no other.

    every_row: rows without the label are kept, with NaN.
    """
    names = {name: _name(name, label) for name in table.column_names}
    if all(new == old for old, new in names.items()):
        return table  # of a single label
    kept = [name for name, new in names.items() if new is not None]
    # A label's columns go where those of a single label are.
    order = sorted(kept, key=lambda name: table.column_names.index(names[name] or name))
    found = table.select(order).rename_columns([names[name] or name for name in order])
    found = found.replace_schema_metadata(table.schema.metadata)
    said = next(name for name in (FRESH, COMPLETE) if name in found.column_names)
    return found if every_row else found.filter(pc.is_finite(found.column(said)))


def _name(column: str, label: str) -> str | None:
    """A column's name among those of a label; None if it is another label's."""
    if column.startswith(SCORE_PREFIX):
        score = ScoreColumn.named(column.removeprefix(SCORE_PREFIX))
        if score.label != label:
            return None
        return SCORE_PREFIX + score.name.removeprefix(f"{label}:" if label else "")
    base, _, of = column.partition(":")
    if base in {FRESH, COMPLETE, HELD}:
        return base if of == label else None
    return column


SCORES_FOLDER = "scores"
# The `event_time` of a row that has none.
NO_TIME = np.iinfo(np.int64).min
_SCORES, _LABELS, _JUDGED = "scores", "labels", "judged"
_PUBLISHED = "published"
_ROWS_IN_MEMORY = 8_192
_SLICE_PREFIX = "slice:"
_ROWS_MAX = b"rows_max"
# Of rows of a stream, before scores and further labels.
_STREAM = (
    ("event_id", pa.int64()),
    ("fresh", pa.float32()),
    ("event_time", pa.int64()),
    ("wait", pa.float32()),
    ("source", pa.int32()),
    (HELD, pa.bool_()),
)


class _Segment:
    """One growing file of one kind; records are collected until they are worth writing."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path = path
        self._schema = schema
        with writing(path):
            self._sink = pa.OSFile(str(path), "wb")
            self._writer = ipc.new_file(self._sink, schema)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0

    def append(self, columns: Sequence[npt.NDArray[Any] | pa.Array]) -> None:
        arrays = [
            column if isinstance(column, pa.Array) else pa.array(column) for column in columns
        ]
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

    def __init__(
        self,
        folder: Path,
        paradigms: Sequence[str],
        slices: Mapping[str, int] | None = None,
        judge_rows_max: int = 0,
        labels: Sequence[str] = (),
    ) -> None:
        """Create the folder; nothing in it is touched before `restore`.

        slices: features whose ids judged rows keep, with their places in `Minibatch.ids`.
        judge_rows_max: how many events of the window are judged, for readers of the segments.
        labels: names of the labels after the first.
        """
        self._folder = folder
        self._slices = dict(slices or {})
        further = [*_further(FRESH, labels), *_further(HELD, labels)]
        self._schemas = {
            _SCORES: pa.schema(
                [*_STREAM, *((SCORE_PREFIX + name, pa.float32()) for name in paradigms), *further]
            ),
            _LABELS: pa.schema(
                [
                    ("event_id", pa.int64()),
                    ("complete", pa.float32()),
                    ("event_time", pa.int64()),
                    ("source", pa.int32()),
                    *_further(COMPLETE, labels),
                ]
            ),
            _JUDGED: _judged_schema(paradigms, self._slices, judge_rows_max, labels),
            _PUBLISHED: pa.schema([*_STREAM, *further]),
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
        if scores is None:
            times = _or_unknown(minibatch.event_times, len(minibatch), np.int64(NO_TIME))
            known = (minibatch.event_ids, minibatch.labels, times, minibatch.sources)
            self._segment(_LABELS).append([*known, *_others(minibatch)])
            return
        if scores.shape != (len(minibatch), self._paradigms):
            raise ValueError(f"scores of shape {scores.shape} for {len(minibatch)} rows")
        self._append_stream(_SCORES, minibatch, np.ascontiguousarray(scores.T))

    def append_published(self, minibatch: Minibatch) -> None:
        """Keep stream rows that nothing scores."""
        self._append_stream(_PUBLISHED, minibatch, ())

    def _append_stream(
        self, kind: str, minibatch: Minibatch, scores: Iterable[npt.NDArray[np.float32]]
    ) -> None:
        rows = len(minibatch)
        self._segment(kind).append(
            [
                minibatch.event_ids,
                minibatch.labels,
                _or_unknown(minibatch.event_times, rows, np.int64(NO_TIME)),
                _or_unknown(minibatch.waits, rows, np.float32(np.nan)),
                minibatch.sources,
                _or_unknown(minibatch.held, rows, np.False_),
                *scores,
                *_others(minibatch),
                *(_or_unknown(each.held, rows, np.False_) for each in minibatch.further),
            ]
        )

    def append_judged(
        self, minibatch: Minibatch, link: str, scores: npt.NDArray[np.float32]
    ) -> None:
        """Keep rows with their complete labels and the scores of one link, NaN where it is gone.

        link: empty where no link had ended when these events happened.

        Raises:
            ValueError: when the rows have no time.
        """
        if minibatch.event_times is None:
            raise ValueError("rows without a time cannot be judged")
        self._segment(_JUDGED).append(
            [
                minibatch.event_ids,
                minibatch.event_times,
                minibatch.labels,
                minibatch.sources,
                pa.repeat(pa.scalar(link), len(minibatch)),
                *(np.ascontiguousarray(minibatch.ids[:, at]) for at in self._slices.values()),
                *np.ascontiguousarray(scores.T),
                *_others(minibatch),
            ]
        )

    def judged_ids(self) -> npt.NDArray[np.int64]:
        """Event ids of all judged rows that are sealed, int64[N]."""
        found = Segments("", self._folder).judged()
        return np.empty(0, np.int64) if found is None else found.column("event_id").to_numpy()

    def seal(self) -> list[str]:
        """Make everything appended so far durable; returns the names of all sealed segments."""
        for segment in self._open.values():
            segment.close()
            self._sealed.append(segment.path.name)
        sync(self._folder)
        self._open = {}
        return list(self._sealed)

    def restore(self, sealed: Sequence[str]) -> None:
        """Drop every segment that is not in `sealed` and continue after those.

        Raises:
            DataError: when a sealed segment is missing or incomplete.
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
        self._next = 1 + max(map(_number, sealed), default=-1)

    def _segment(self, kind: str) -> _Segment:
        if kind not in self._open:
            path = self._folder / f"{kind}-{self._next:06d}.arrow"
            self._open[kind] = _Segment(path, self._schemas[kind])
            self._next += 1
        return self._open[kind]


@dataclass(frozen=True)
class Segments:
    """The segments of one trained window, in a folder; None where it has no rows with scores.

    label: whose rows and scores they are read for: "" is the only label, or the first of several.
    """

    window: str
    folder: Path | None
    label: str = ""

    def scores(self) -> pa.Table | None:
        """Event ids, fresh labels, times, waits, sources, held flags and scores; None if none."""
        return self._read(_SCORES)

    def published(self) -> pa.Table | None:
        """As `scores`, without the scores, and including rows that were not scored."""
        return self._read(_PUBLISHED, _SCORES, columns=[name for name, _ in _STREAM])

    def labels(self) -> pa.Table | None:
        """Event ids, complete labels, times and sources in the order written; None without any."""
        return self._read(_LABELS)

    def judged(self) -> pa.Table | None:
        """Rows with the scores of earlier links in the order written; None when there are none.

        Rows without the label are included, with NaN, since they count for the sample.
        """
        return self._read(_JUDGED)

    def _read(self, *kinds: str, columns: Sequence[str] | None = None) -> pa.Table | None:
        if self.folder is None:
            return None
        tables = [
            of_label(_read_segment(path), self.label, every_row=kind == _JUDGED)
            for kind in kinds
            for path in sorted(self.folder.glob(f"{kind}-*.arrow"))
        ]
        if columns is not None:
            tables = [table.select(columns) for table in tables]
        return pa.concat_tables(tables).combine_chunks() if tables else None


def paradigms_of(scores: pa.Table) -> tuple[str, ...]:
    """Paradigms whose scores a table holds, the serving one first."""
    names = [name for name in scores.column_names if name.startswith(SCORE_PREFIX)]
    return tuple(name.removeprefix(SCORE_PREFIX) for name in names)


def empty_judged(paradigms: Sequence[str]) -> pa.Table:
    return _judged_schema(paradigms, (), 0).empty_table()


def slices_of(judged: pa.Table) -> tuple[str, ...]:
    names = [name for name in judged.column_names if name.startswith(_SLICE_PREFIX)]
    return tuple(name.removeprefix(_SLICE_PREFIX) for name in names)


def without_slices(judged: pa.Table) -> pa.Table:
    return judged.drop_columns([_SLICE_PREFIX + name for name in slices_of(judged)])


def slice_ids(judged: pa.Table, feature: str) -> npt.NDArray[np.int64]:
    return np.asarray(judged.column(_SLICE_PREFIX + feature).to_numpy(), np.int64)


def judge_rows_max(judged: pa.Table) -> int:
    """How many events of the window that these rows came with were to be judged."""
    return int((judged.schema.metadata or {})[_ROWS_MAX])


def score_matrix(scores: pa.Table) -> npt.NDArray[np.float32]:
    """Scores as float32[N, paradigms]."""
    matrix = np.empty((scores.num_rows, len(paradigms_of(scores))), dtype=np.float32)
    for index, name in enumerate(paradigms_of(scores)):
        matrix[:, index] = scores.column(SCORE_PREFIX + name).to_numpy()
    return matrix


def _judged_schema(
    paradigms: Sequence[str], slices: Iterable[str], judge_rows_max: int, labels: Sequence[str] = ()
) -> pa.Schema:
    return pa.schema(
        [("event_id", pa.int64()), ("event_time", pa.int64()), ("complete", pa.float32())]
        + [("source", pa.int32()), ("link", pa.utf8())]
        + [(_SLICE_PREFIX + name, pa.int64()) for name in slices]
        + [(SCORE_PREFIX + name, pa.float32()) for name in paradigms]
        + _further(COMPLETE, labels),
        {_ROWS_MAX: str(judge_rows_max).encode()},
    )


def _further(column: str, labels: Sequence[str]) -> list[tuple[str, pa.DataType]]:
    kind = pa.bool_() if column == HELD else pa.float32()
    return [(label_column(column, name), kind) for name in labels]


def _others(minibatch: Minibatch) -> list[npt.NDArray[Any]]:
    return [each.labels for each in minibatch.further]


def _or_unknown(
    values: npt.NDArray[Any] | None, rows: int, unknown: np.generic
) -> npt.NDArray[Any]:
    return np.full(rows, unknown) if values is None else values


def _read_segment(path: Path) -> pa.Table:
    with _reading(path) as segment:
        return segment.read_all()


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
