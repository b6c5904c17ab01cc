"""Dead letters between the runner that read their rows and the frame that takes them along."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping, Sequence

from forebay.datatasks.tasks import DataTask, DeadRow
from forebay.executors.window_files.dead_letters import letter_line
from forebay.executors.wire.messages import Letter
from forebay.mixture.queue.queue import QueueClosedError
from forebay.system.liveness import progressed

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
