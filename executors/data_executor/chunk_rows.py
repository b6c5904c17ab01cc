"""From a chunk to what is served: encoded rows with a label, dead letters, positions.

Each row is exactly one of three: served, dead, or counted as one whose label was not known.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.datatasks.sources.common.rows.chunks import place_text, without_columns
from forebay.datatasks.sources.common.rows.offset_runs import offsets_read
from forebay.datatasks.sources.common.values.row_texts import row_texts
from forebay.datatasks.sources.common.values.times import UNKNOWN, falls
from forebay.datatasks.tasks import Chunk, DataTask, DeadRow, Position, TaskProgress
from forebay.executors.window_files.dead_letters import letter_line
from forebay.executors.wire.messages import Letter
from forebay.mixture.features.encode import Encoded
from forebay.mixture.queue.buffer import BufferedChunk
from forebay.mixture.queue.queue import QueueClosedError
from forebay.system.liveness import progressed

Locate = Callable[[Position], dict[str, str | int]]
Ends = tuple[int | None, int | None]
NULL_LABEL = "the label is null"


@dataclass(eq=False)
class ServedChunk:
    """The rows of one chunk that are served, and those that are not.

    kept: index in the chunk of each served row. dead: by position. chunk: its positions, without
    its rows. first_odd: the place of the first served row whose time is after the span.
    not_known: index in the chunk of each row whose label was not known in time. ends: the first and
    the last time of the task's served rows up to the end of the chunk. published: of a stream, when
    each served row was.
    """

    batch: pa.RecordBatch
    kept: npt.NDArray[np.int64]
    dead: list[DeadRow]
    chunk: Chunk
    before: TaskProgress
    first_odd: str = ""
    not_known: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    ends: Ends = (None, None)
    published: npt.NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        """Prefix sums, so that a position in the middle costs one bisection."""
        self._positions = [row.position for row in self.dead]
        self._counts = list(accumulate((row.rows for row in self.dead), initial=0))
        outside = self.chunk.outside
        self._outside = None if outside is None else outside[self.kept]

    def progress(self, served: int) -> TaskProgress:
        """How far the task is once the first `served` rows of the chunk are used."""
        if served < len(self.kept):
            row = int(self.kept[served])
            position = self.chunk.position(row)
            dead = self._counts[bisect_left(self._positions, position)]
            not_known = int(np.searchsorted(self.not_known, row))
        else:
            position, dead, not_known = self.chunk.end, self._counts[-1], len(self.not_known)
        late, odd = self._outside_of(served)
        offsets = self.before.offsets
        if self.chunk.runs is not None:  # of a stream
            offsets = offsets.plus(offsets_read(self.chunk.runs, position.part))
        return TaskProgress(
            position=position,
            rows_read=self.before.rows_read + served + dead + not_known,
            dead_rows=self.before.dead_rows + dead,
            label_not_known=self.before.label_not_known + not_known,
            late_rows=self.before.late_rows + late,
            odd_timestamps=self.before.odd_timestamps + odd,
            first_odd=self.before.first_odd or (self.first_odd if odd else ""),
            offsets=offsets,
            # Of the whole chunk: rows that are served later count again then, which changes
            # neither the first time nor, of what has no lag, the last.
            first_us=self.ends[0],
            last_us=self._last_published(served),
        )

    def _last_published(self, served: int) -> int | None:
        """When the newest row so far was published; of storage that never says, `ends`."""
        if self.published is None:
            return self.ends[1]
        last = int(self.published[:served].max(initial=UNKNOWN))
        return max(last, self.before.last_us or last) if last != UNKNOWN else self.before.last_us

    def _outside_of(self, served: int) -> tuple[int, int]:
        """How many of the first served rows have a time before the span, and after it."""
        if self._outside is None:
            return 0, 0
        some = self._outside[:served]
        return int((some < 0).sum()), int((some > 0).sum())

    @property
    def after(self) -> TaskProgress:
        return self.progress(len(self.kept))

    def buffered(self, hour: int) -> BufferedChunk:
        """The served rows for a buffer; `hour` is the latest hour before them."""
        hours = self.chunk.hours
        if len(self.kept) < len(hours):
            hours = hours[self.kept]
        if len(hours) and (hours[0] < hour or falls(hours)):
            hours = np.maximum.accumulate(np.maximum(hours, np.int32(hour)))
        return BufferedChunk(self.batch, hours, self.progress, self._token_bytes())

    def _token_bytes(self) -> int:
        """What `progress` keeps in memory."""
        chunk = self.chunk
        arrays = (chunk.parts, chunk.rows, chunk.outside, self.kept, self.not_known, self.published)
        return sum(each.nbytes for each in arrays if each is not None)


def served_chunk(
    chunk: Chunk, encoded: Encoded, before: TaskProgress, locate: Locate
) -> ServedChunk:
    """Remove from a chunk what is not trained on: bad rows, and those without a label in time."""
    reasons = dict(encoded.bad)
    left_out = encoded.null_label.copy()
    left_out[list(reasons)] = True
    not_known = np.zeros(0, np.int64)
    if encoded.not_known is not None:
        left_out |= encoded.not_known
        good = encoded.not_known.copy()
        good[list(reasons)] = False
        not_known = np.flatnonzero(good)
    kept: npt.NDArray[np.int64] = np.arange(len(chunk.parts))
    batch, dead = encoded.batch, list(chunk.dead)
    if left_out.any():
        unlabelled = np.setdiff1d(np.flatnonzero(encoded.null_label), not_known)
        reasons = dict.fromkeys(unlabelled.tolist(), NULL_LABEL) | reasons
        kept = np.flatnonzero(~left_out)
        batch = batch.take(pa.array(kept))
        dead += _dead_rows(chunk, reasons, locate)
        dead.sort(key=lambda row: row.position)
    odd, ends = _first_odd(chunk, kept, locate), _ends(chunk, kept, before)
    published = None if chunk.published is None else chunk.published[kept]
    return ServedChunk(
        batch, kept, dead, _positions(chunk), before, odd, not_known, ends, published
    )


def _positions(chunk: Chunk) -> Chunk:
    """A chunk without its rows, so that they and the arrays behind them can be freed."""
    return replace(
        chunk,
        batch=without_columns(0),
        parts=chunk.parts.copy(),
        rows=chunk.rows.copy(),
        dead=(),
        published=None,
        times=None,
    )


def _ends(chunk: Chunk, kept: npt.NDArray[np.int64], before: TaskProgress) -> Ends:
    times = chunk.times if chunk.published is None else chunk.published
    if times is None or not len(kept):
        return before.first_us, before.last_us
    known = times if len(kept) == len(times) else times[kept]
    if known.min() == UNKNOWN:  # the smallest of all
        known = known[known != UNKNOWN]
        if not len(known):
            return before.first_us, before.last_us
    first, last = int(known.min()), int(known.max())
    if before.first_us is not None and before.last_us is not None:
        first, last = min(first, before.first_us), max(last, before.last_us)
    return first, last


def _first_odd(chunk: Chunk, kept: npt.NDArray[np.int64], locate: Locate) -> str:
    if chunk.outside is None:
        return ""
    odd = kept[chunk.outside[kept] > 0]
    return place_text(locate(chunk.position(int(odd[0])))) if len(odd) else ""


def _dead_rows(chunk: Chunk, reasons: Mapping[int, str], locate: Locate) -> list[DeadRow]:
    texts = row_texts(chunk.batch, list(reasons))
    positions = [chunk.position(row) for row in reasons]
    return [
        DeadRow(position=position, location=locate(position), reason=reason, row=text)
        for position, reason, text in zip(positions, reasons.values(), texts, strict=True)
    ]


PENDING_BYTES = 1 << 20  # the most that one frame gets
_LETTER_BYTES = 100  # of a letter beside its line
_WAIT_SECONDS = 1.0


class PendingLetters:
    """Those of one epoch, all of which the next frame takes, whichever rows it has.

    So letters may leave before the frame that counts their rows: a task without any good row has
    no frame before its end.
    """

    def __init__(self, bytes_max: Mapping[str, int]) -> None:
        """bytes_max: of the lines of a source that are sent; later rows are only counted."""
        self._bytes_max = bytes_max
        self._changed = threading.Condition()
        self._letters: list[Letter] = []
        self._bytes = 0
        self._sent: Counter[str] = Counter()
        self._closed = False

    def add(self, task: DataTask, dead: Sequence[DeadRow], first: int) -> None:
        """Add rows of a chunk before it is put into the queue; waits while too much is pending.

        first: how many dead rows of the task come before these.

        Raises:
            QueueClosedError: when the epoch ends.
        """
        for index, row in enumerate(dead):
            is_full = self._sent[task.source] >= self._bytes_max[task.source]
            rows = sum(each.rows for each in dead[index:]) if is_full else row.rows
            line = "" if is_full else letter_line(task, row)
            self._add(Letter(task_id=task.task_id, first=first, end=first + rows, line=line))
            if is_full:
                return
            first += rows

    def take(self) -> list[Letter]:
        with self._changed:
            taken, self._letters, self._bytes = self._letters, [], 0
            self._changed.notify_all()
        return taken

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _add(self, letter: Letter) -> None:
        size = _LETTER_BYTES + len(letter.line.encode())
        with self._changed:
            while not self._changed.wait_for(lambda: self._has_room(size), _WAIT_SECONDS):
                progressed()
            if self._closed:
                raise QueueClosedError
            self._letters.append(letter)
            self._bytes += size
            self._sent[letter.source] += len(letter.line.encode())

    def _has_room(self, size: int) -> bool:
        return self._closed or not self._letters or self._bytes + size <= PENDING_BYTES
