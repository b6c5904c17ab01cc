"""PublishedRows: what a stream published about events, by event id, in sorted arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class PublishedRows:
    """N rows, ascending by event id: 21 bytes of memory each.

    ids, marks: int64[N]; fresh: int8[N], the label as published; waits: float32[N] seconds. A mark
    says when a row was published, in whatever unit its owner chose.
    """

    ids: Ints
    fresh: npt.NDArray[np.int8]
    waits: Floats
    marks: Ints

    def __len__(self) -> int:
        """Rows."""
        return len(self.ids)

    @classmethod
    def none(cls) -> PublishedRows:
        """No row."""
        zero = np.zeros(0, np.int64)
        return cls(zero, zero.astype(np.int8), zero.astype(np.float32), zero)

    @classmethod
    def of(cls, ids: Ints, fresh: Floats, waits: Floats, marks: Ints) -> PublishedRows:
        """From rows in any order; the earliest one of each event is kept."""
        order = np.lexsort((fresh, waits, marks, ids))
        ids = ids[order]
        first = np.ones(len(ids), np.bool_)
        first[1:] = ids[1:] != ids[:-1]
        order = order[first]
        return cls(ids[first], fresh[order].astype(np.int8), waits[order], marks[order])

    def followed_by(self, later: PublishedRows) -> PublishedRows:
        """Both; for the same event, rows of both are kept, this one's first."""
        places = np.searchsorted(self.ids, later.ids, side="right")
        return PublishedRows(
            *(
                np.insert(mine, places, theirs)
                for mine, theirs in zip(self._columns, later._columns, strict=True)
            )
        )

    def united_with(self, other: PublishedRows) -> PublishedRows:
        """Both; the earliest row of each event is kept."""
        place = self.places(other.ids)
        there = place >= 0
        if not there.any():
            return self.followed_by(other)
        both = [np.concatenate(pair) for pair in zip(self._columns, other._columns, strict=True)]
        ids, fresh, waits, marks = both
        return PublishedRows.of(ids, fresh, waits, marks)

    def since(self, mark: int) -> PublishedRows:
        """Rows with this mark or a later one."""
        kept = self.marks >= mark
        return self if kept.all() else PublishedRows(*(each[kept] for each in self._columns))

    def places(self, ids: Ints) -> Ints:
        """The first row of each event; -1 where there is none."""
        if not len(self.ids):
            return np.full(len(ids), -1, np.int64)
        place = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        return np.where(self.ids[place] == ids, place, -1)

    @property
    def _columns(self) -> Sequence[npt.NDArray[Any]]:
        return self.ids, self.fresh, self.waits, self.marks


class GrowingRows:
    """Rows that come a minibatch at a time: a few runs, each twice as long as the next."""

    def __init__(self) -> None:
        """No row yet."""
        self._runs: list[PublishedRows] = []

    def add(self, rows: PublishedRows) -> None:
        """Add rows: each is moved as often as the number of rows has doubled."""
        runs = self._runs
        runs.append(rows)
        while len(runs) > 1 and len(runs[-2]) <= 2 * len(runs[-1]):
            last = runs.pop()
            runs[-1] = runs[-1].united_with(last)

    def drop_before(self, mark: int) -> None:
        """Forget rows with an earlier mark."""
        self._runs = [kept for kept in (run.since(mark) for run in self._runs) if len(kept)]

    def __len__(self) -> int:
        """Rows."""
        return sum(len(run) for run in self._runs)

    def find(self, ids: Ints, marks_max: Ints) -> tuple[Floats, Floats]:
        """(fresh, waits) of the earliest row of each event; NaN where its mark is above the bound.

        marks_max: int64[N], the bound of each event.
        """
        found = []
        for rows in self._runs:
            place = rows.places(ids)
            at = np.flatnonzero(place >= 0)
            at = at[rows.marks[place[at]] <= marks_max[at]]
            found.append((at, *(each[place[at]] for each in (rows.fresh, rows.waits, rows.marks))))
        fresh, waits = (np.full(len(ids), np.nan, np.float32) for _ in range(2))
        if found:
            of, *columns = (np.concatenate(each) for each in zip(*found, strict=True))
            # The earliest is written last.
            order = np.lexsort((*columns, of))[::-1]
            fresh[of[order]], waits[of[order]] = columns[0][order], columns[1][order]
        return fresh, waits
