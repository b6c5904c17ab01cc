"""Rows that were read for a window and trained on, from its seal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from forebay.datatasks.tasks import TaskProgress
from forebay.executors.model_line.link import ReadRows
from forebay.executors.window_files.checkpoints import Seal
from forebay.executors.window_files.steps import Counts
from forebay.mixture.learner import Learner
from forebay.mixture.left_out import learnt_and_left_out


def window_rows(seal: Seal) -> Counts:
    """Rows of the window that a seal holds, int64 by source index."""
    pairs = zip(seal.base_seen, seal.seen, strict=True)
    return np.array([after.rows - before.rows for before, after in pairs], np.int64)


def read_rows(names: Sequence[str], progress: Mapping[str, TaskProgress]) -> dict[str, ReadRows]:
    found = {name: ReadRows() for name in names}
    for task, at in progress.items():
        name = task.rpartition("/")[0]
        before = found[name]
        found[name] = ReadRows(
            rows=before.rows + at.rows_read,
            dead=before.dead + at.dead_rows,
            late=before.late + at.late_rows,
            odd_timestamps=before.odd_timestamps + at.odd_timestamps,
            first_odd=before.first_odd or at.first_odd,
            label_not_known=before.label_not_known + at.label_not_known,
            offsets=before.offsets.plus(at.offsets),
        )
    return found


def row_times(progress: Mapping[str, TaskProgress]) -> dict[str, tuple[int, int]]:
    """First and last time of the rows of each source, in microseconds since 1970 UTC.

    Sources whose rows have no time are left out.
    """
    found: dict[str, tuple[int, int]] = {}
    for task, at in progress.items():
        if at.first_us is not None and at.last_us is not None:
            name = task.rpartition("/")[0]
            first, last = found.get(name, (at.first_us, at.last_us))
            found[name] = min(first, at.first_us), max(last, at.last_us)
    return found


def learnt_rows_of(learner: Learner) -> dict[str, list[int]]:
    """Rows that a learner's variants were trained on and left out since the line began."""
    return learnt_and_left_out(learner.learnt(), learner.left_out())


def learnt_rows(names: Sequence[str], seal: Seal) -> dict[str, dict[str, int]]:
    """Rows of the window that each variant was trained on, by source; and left out, if any."""
    none = [0] * len(names)  # for a line whose windows did not count this yet
    return {
        name: {
            paradigm: count
            for paradigm, rows in seal.learnt.items()
            if (count := rows[at] - seal.base_learnt.get(paradigm, none)[at]) or "/" not in paradigm
        }
        for at, name in enumerate(names)
        if seal.learnt
    }
