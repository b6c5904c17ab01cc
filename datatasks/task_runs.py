"""Positions of tasks by their ids, of which tasks that have ended may be folded.

A window that grows has thousands of tasks, which end one after the other: `clicks/0..119` stands
for the tasks 0 to 119 of clicks, all at their ends, with the counts of all of them. What is sealed
and sent is then as small as what has not ended yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self

from forebay.datatasks.tasks import TaskProgress

_TO = ".."


class Run(NamedTuple):
    """Tasks [first, end) of a source, by their numbers."""

    source: str
    first: int
    end: int

    @classmethod
    def of(cls, name: str) -> Self | None:
        """What a key of positions stands for; None for the id of one task."""
        source, _, numbers = name.rpartition("/")
        first, to, last = numbers.partition(_TO)
        return cls(source, int(first), int(last) + 1) if to else None

    @property
    def name(self) -> str:
        return f"{self.source}/{self.first}{_TO}{self.end - 1}"


def counted_together(one: TaskProgress, other: TaskProgress) -> TaskProgress:
    """Counts of tasks that have ended, in the order of their numbers."""
    firsts = [each.first_us for each in (one, other) if each.first_us is not None]
    lasts = [each.last_us for each in (one, other) if each.last_us is not None]
    return TaskProgress(
        position=other.position,
        rows_read=one.rows_read + other.rows_read,
        dead_rows=one.dead_rows + other.dead_rows,
        late_rows=one.late_rows + other.late_rows,
        odd_timestamps=one.odd_timestamps + other.odd_timestamps,
        first_odd=one.first_odd or other.first_odd,
        label_not_known=one.label_not_known + other.label_not_known,
        offsets=one.offsets.plus(other.offsets),
        first_us=min(firsts, default=None),
        last_us=max(lasts, default=None),
        ended=True,
    )


class Positions:
    """entries: by task, or by run. ended: how many tasks have."""

    def __init__(self, known: Mapping[str, TaskProgress], *, folds: bool) -> None:
        """folds: whether tasks that have ended are folded."""
        self.entries = dict(known)
        self._folds = folds
        runs = [run for run in map(Run.of, known) if run is not None]
        single = sum(at.ended for name, at in known.items() if Run.of(name) is None)
        self.ended = single + sum(run.end - run.first for run in runs)
        self._by_first = {(run.source, run.first): run for run in runs}
        self._by_end = {(run.source, run.end): run for run in runs}

    def set(self, task_id: str, at: TaskProgress) -> None:
        """Replace the position of one task, which has not ended."""
        before = self.entries.get(task_id)
        self.ended += at.ended - (before.ended if before is not None else False)
        self.entries[task_id] = at
        if at.ended and self._folds:
            self._fold(task_id, at)

    def _fold(self, task_id: str, at: TaskProgress) -> None:
        source, _, number = task_id.rpartition("/")
        run = Run(source, int(number), int(number) + 1)
        del self.entries[task_id]
        before = self._by_end.pop((source, run.first), None)
        if before is not None:
            del self._by_first[source, before.first]
            at = counted_together(self.entries.pop(before.name), at)
            run = Run(source, before.first, run.end)
        after = self._by_first.pop((source, run.end), None)
        if after is not None:
            del self._by_end[source, after.end]
            at = counted_together(at, self.entries.pop(after.name))
            run = Run(source, run.first, after.end)
        self._by_first[source, run.first] = self._by_end[source, run.end] = run
        self.entries[run.name] = at
