"""From a chunk to what is served of it: encoded rows with a label, dead letters, positions."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.datatasks.tasks import Chunk, DeadRow, Position, TaskProgress
from forebay.mixture.features.encode import Encoded
from forebay.mixture.queue.buffer import BufferedChunk

Locate = Callable[[Position], dict[str, str | int]]
NULL_LABEL = "the label is null"


@dataclass(frozen=True, eq=False)
class ServedChunk:
    """Rows of one chunk that are served, and rows of it that are not.

    kept: index in the chunk of each served row. dead: by position.
    """

    batch: pa.RecordBatch
    kept: npt.NDArray[np.int64]
    dead: list[DeadRow]
    chunk: Chunk
    before: TaskProgress
    _positions: list[Position] = field(init=False)
    _counts: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Prefix sums, so that a position in the middle costs one bisection."""
        object.__setattr__(self, "_positions", [row.position for row in self.dead])
        counts = list(accumulate((row.rows for row in self.dead), initial=0))
        object.__setattr__(self, "_counts", counts)

    def progress(self, served: int) -> TaskProgress:
        """Where the task stands once the first `served` rows of the chunk are used."""
        if served < len(self.kept):
            position = self.chunk.position(int(self.kept[served]))
            dead = self._counts[bisect_left(self._positions, position)]
        else:
            position, dead = self.chunk.end, self._counts[-1]
        return TaskProgress(
            position=position,
            rows_read=self.before.rows_read + served + dead,
            dead_rows=self.before.dead_rows + dead,
        )

    @property
    def after(self) -> TaskProgress:
        """Where the task stands behind the chunk."""
        return self.progress(len(self.kept))

    def buffered(self, hour: int) -> BufferedChunk:
        """The served rows for a buffer; `hour` is the latest hour before them."""
        hours = np.maximum.accumulate(np.maximum(self.chunk.hours[self.kept], np.int32(hour)))
        return BufferedChunk(self.batch, hours, self.progress)


def served_chunk(
    chunk: Chunk, encoded: Encoded, before: TaskProgress, locate: Locate
) -> ServedChunk:
    """Take rows without a label out of a chunk."""
    count = len(chunk.parts)
    if not encoded.null_label.any():
        return ServedChunk(encoded.batch, np.arange(count), list(chunk.dead), chunk, before)
    unlabelled = np.flatnonzero(encoded.null_label)
    kept = np.flatnonzero(~encoded.null_label)
    dead = [*chunk.dead, *_dead_rows(chunk, unlabelled, locate)]
    dead.sort(key=lambda row: row.position)
    return ServedChunk(encoded.batch.take(pa.array(kept)), kept, dead, chunk, before)


def _dead_rows(chunk: Chunk, rows: npt.NDArray[np.int64], locate: Locate) -> list[DeadRow]:
    values = chunk.batch.take(pa.array(rows)).to_pylist()
    positions = [chunk.position(int(row)) for row in rows]
    return [
        DeadRow(
            position=position,
            location=locate(position),
            reason=NULL_LABEL,
            row=json.dumps(value, default=str, ensure_ascii=False),
        )
        for position, value in zip(positions, values, strict=True)
    ]
