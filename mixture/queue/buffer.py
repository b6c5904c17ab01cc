"""Serving buffer: decoded rows of one source, waiting for their turn; bounded in rows and bytes.

Rows of one task keep their order in a *lane*. The buffer's head is the lane with the earliest
slot, so that a task that is ahead cannot stand in the way of an earlier one. Not safe for use
from several threads: `PrioritisedQueue` guards all buffers of an executor with one lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@dataclass(frozen=True, eq=False)
class Piece:
    """Consecutive rows of one task.

    slots: int32[N], never descending. token(k): an opaque value that says where the task stands
    once the first k rows are used.
    """

    batch: pa.RecordBatch
    slots: npt.NDArray[np.int32]
    token: Callable[[int], object]


@dataclass(frozen=True, eq=False)
class Taken:
    """Rows that left a buffer: a slice without copy, and where its task then stands."""

    task: Hashable
    batch: pa.RecordBatch | None
    rows: int
    slot: int
    token: object


@dataclass
class _Lane:
    """What is waiting of one task. `slot` is the slot of its next row as far as known."""

    slot: int
    pieces: deque[Piece] = field(default_factory=deque)
    cursor: int = 0
    end: object | None = None

    def head_run(self) -> int:
        """Rows at the head that share the head's slot."""
        if not self.pieces:
            return 0
        slots = self.pieces[0].slots
        behind = int(np.searchsorted(slots, slots[self.cursor], side="right"))
        return behind - self.cursor


class ServingBuffer:
    """Waiting rows of one source."""

    def __init__(self, rows_max: int, bytes_max: int) -> None:
        """Bounds. A task whose lane is empty may always add one piece: others may wait for it.

        Bytes are counted by whole pieces until their last row left: a slice keeps its parent
        alive.
        """
        self.rows = 0
        self.bytes = 0
        self._rows_max = rows_max
        self._bytes_max = bytes_max
        self._lanes: dict[Hashable, _Lane] = {}

    def open_task(self, task: Hashable, slot: int) -> None:
        """Expect pieces of a task whose first row has this slot or a later one."""
        self._lanes[task] = _Lane(slot)

    def has_room(self, task: Hashable, piece: Piece) -> bool:
        """Whether the piece may be added now."""
        if not self._lanes[task].pieces:
            return True
        fits_rows = self.rows + piece.batch.num_rows <= self._rows_max
        return fits_rows and self.bytes + _size(piece) <= self._bytes_max

    def put(self, task: Hashable, piece: Piece) -> None:
        """Add rows behind those of the same task."""
        lane = self._lanes[task]
        if not lane.pieces:
            lane.slot = int(piece.slots[0])
        lane.pieces.append(piece)
        self.rows += piece.batch.num_rows
        self.bytes += _size(piece)

    def end_task(self, task: Hashable, token: object) -> None:
        """No further piece comes; `token` says that the task is at its end."""
        self._lanes[task].end = token

    @property
    def is_within_bounds(self) -> bool:
        """Whether no task had to go beyond the bounds."""
        return self.rows <= self._rows_max and self.bytes <= self._bytes_max

    @property
    def open_tasks(self) -> int:
        """Tasks that may still add rows."""
        return sum(lane.end is None for lane in self._lanes.values())

    def reading(self) -> dict[Hashable, int]:
        """The slot of the next row of each task that is still being read, as far as known."""
        return {task: lane.slot for task, lane in self._lanes.items() if lane.end is None}

    def slot(self) -> int | None:
        """The earliest slot that is waiting here or may still come; None when nothing is open."""
        slots = [lane.slot for lane in self._lanes.values() if lane.pieces or lane.end is None]
        return min(slots, default=None)

    def available(self, slot: int) -> int:
        """Rows that can be taken of this slot (of its first lane) at once."""
        lane = self._head(slot)
        return lane[1].head_run() if lane else 0

    def take(self, slot: int, rows_max: int) -> Taken:
        """Remove up to `rows_max` rows of the slot, as one slice."""
        found = self._head(slot)
        if found is None:
            raise LookupError(f"no row of slot {slot} is waiting")
        task, lane = found
        piece = lane.pieces[0]
        rows = min(rows_max, lane.head_run())
        batch = piece.batch.slice(lane.cursor, rows)
        lane.cursor += rows
        token = piece.token(lane.cursor)
        self.rows -= rows
        if lane.cursor == piece.batch.num_rows:
            self._drop_piece(lane)
            if lane.end is not None and not lane.pieces:
                token = lane.end
                del self._lanes[task]
        else:
            lane.slot = int(piece.slots[lane.cursor])
        return Taken(task, batch, rows, slot, token)

    def take_ended(self) -> list[Taken]:
        """Remove tasks that ended and have no row waiting."""
        ended = [
            Taken(task, None, 0, lane.slot, lane.end)
            for task, lane in self._lanes.items()
            if lane.end is not None and not lane.pieces
        ]
        for taken in ended:
            del self._lanes[taken.task]
        return ended

    def _head(self, slot: int) -> tuple[Hashable, _Lane] | None:
        for task, lane in self._lanes.items():
            if lane.pieces and lane.slot == slot:
                return task, lane
        return None

    def _drop_piece(self, lane: _Lane) -> None:
        piece = lane.pieces.popleft()
        self.bytes -= _size(piece)
        lane.cursor = 0
        # Without a next piece the last row's slot is the earliest that may still come.
        lane.slot = int(lane.pieces[0].slots[0] if lane.pieces else piece.slots[-1])


def _size(piece: Piece) -> int:
    size: int = piece.batch.get_total_buffer_size()
    return size
