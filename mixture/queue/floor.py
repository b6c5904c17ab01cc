"""Minimum shares: a deficit counter around the priority, so that no stream starves.

A group of buffers (a stream) with a floor of 0.2 earns 0.2 rows with each row that is served while
the group has rows waiting. Rows that it earned but did not get by priority are served first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from forebay.mixture.queue.priority import take

Runs = list[tuple[int, int]]


class FlooredPriority:
    """`take` with a minimum share for each group of buffers."""

    def __init__(
        self,
        weights: Sequence[float],
        groups: Sequence[int],
        floors: Sequence[float],
        queue_unit: float | Sequence[float] = 1.0,
    ) -> None:
        """`groups[i]` is the group of buffer i, `floors[g]` the minimum share of group g.

        Raises:
            ValueError: for a floor outside [0, 1), or floors that sum up to more than 1.
        """
        if any(not 0 <= floor < 1 for floor in floors) or sum(floors) > 1:
            raise ValueError(f"floors must be in [0, 1) and sum up to at most 1, not {floors}")
        self._weights = weights
        self._groups = groups
        self._floors = floors
        self._unit = queue_unit
        self._owed = [0.0] * len(floors)

    def take(self, queued_rows: Sequence[int], rows_max: int) -> Runs:
        """The next runs. Nothing is counted until `served` reports what was taken."""
        runs = take(self._weights, queued_rows, rows_max, self._unit)
        short = self._short(queued_rows, runs)
        if not short:
            return runs
        first: Runs = []
        queued = list(queued_rows)
        for group, rows in short.items():
            own = [n if self._groups[i] == group else 0 for i, n in enumerate(queued)]
            first += take(self._weights, own, min(rows, rows_max - _rows(first)), self._unit)
            queued = list(queued_rows)
            for buffer, taken in first:
                queued[buffer] -= taken
        return first + take(self._weights, queued, rows_max - _rows(first), self._unit)

    def served(self, queued_rows: Sequence[int], runs: Runs) -> None:
        total = _rows(runs)
        got = self._by_group(runs)
        waiting = self._waiting(queued_rows)
        for group, floor in enumerate(self._floors):
            # A group without rows earns nothing, and rows above the share are not a debt.
            owed = self._owed[group] + floor * total - got[group] if waiting[group] else 0.0
            self._owed[group] = max(0.0, owed)

    def _short(self, queued_rows: Sequence[int], runs: Runs) -> dict[int, int]:
        """Rows by group that are due within these runs beyond what priority gives."""
        total = _rows(runs)
        got = self._by_group(runs)
        waiting = self._waiting(queued_rows)
        due = {
            group: min(waiting[group], math.floor(self._owed[group] + floor * total)) - got[group]
            for group, floor in enumerate(self._floors)
        }
        return {group: rows for group, rows in due.items() if rows > 0}

    def _by_group(self, runs: Runs) -> list[int]:
        got = [0] * len(self._floors)
        for buffer, rows in runs:
            got[self._groups[buffer]] += rows
        return got

    def _waiting(self, queued_rows: Sequence[int]) -> list[int]:
        return self._by_group(list(enumerate(queued_rows)))


def _rows(runs: Runs) -> int:
    return sum(rows for _, rows in runs)
