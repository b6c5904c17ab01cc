"""Finds the units of a task that kill their reader: longer and longer stretches, then bisection.

A unit is blamed only if a fresh process died reading it: of the unit alone, or of the units after
it, which are harmless without it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from forebay.datatasks.tasks import Position, ReadUnit
from forebay.executors.poison.trial import TrialDiedError

# A decoder may take any number of messages at a time: the one that died was at most so far ahead.
UNITS_MIN = 1024
_STRETCH_MAX = 512
_LOG = logging.getLogger(__name__)


class Reading(Protocol):
    """Reads parts of one task; see `Trial`."""

    def units(self, position: Position, count: int) -> Sequence[ReadUnit]:
        """The next units from a position on; none at the task's end."""

    def read(self, first: Position, end: Position) -> int:
        """Read rows [first, end); how many there were. Raises TrialDiedError."""

    def begin_anew(self) -> None:
        """Start afresh: nothing that was read before may matter."""


class PoisonSearch:
    """Searches from the place where a process died."""

    def __init__(
        self, reading: Reading, rows_min: int, found: Callable[[ReadUnit, str], None]
    ) -> None:
        """Nothing is read yet.

        Args:
            reading: of the task.
            rows_min: the search ends this many rows after the place, or after the last poison.
            found: called with each poison and the reason, before the search continues.
        """
        self._reading = reading
        self._rows_min = rows_min
        self._found = found

    def run(self, position: Position) -> None:
        """Search from a position on, until nothing near it kills a reader."""
        poison = self._next_after(position)
        while poison is not None:
            poison = self._next_after(max(position, poison.end))

    def _next_after(self, start: Position) -> ReadUnit | None:
        """The next poison, once it is reported; None if none is near."""
        rows, length, position = 0, 1, start
        passed: list[ReadUnit] = []
        while rows < self._rows_min or len(passed) < UNITS_MIN:
            stretch = self._reading.units(position, length)
            if not stretch:
                return None
            try:
                rows += self._reading.read(position, stretch[-1].end)
            except TrialDiedError as death:
                poison = self._blame(start, passed, position, stretch, death)
                if poison is not None:
                    return poison
            passed += stretch
            length = min(2 * length, _STRETCH_MAX)
            position = stretch[-1].end
        return None

    def _blame(
        self,
        start: Position,
        passed: Sequence[ReadUnit],
        position: Position,
        stretch: Sequence[ReadUnit],
        death: TrialDiedError,
    ) -> ReadUnit | None:
        """Find what kills in a stretch, or before it: the first unit that does so alone."""
        units = [*passed, *stretch]
        while len(stretch) > 1:
            half = stretch[: len(stretch) // 2]
            found = self._death_of(position, half[-1].end)
            if found is None:
                position, stretch = half[-1].end, stretch[len(half) :]
                death = TrialDiedError(str(death), is_certain=False)
            else:
                stretch, death = half, found
        (unit,) = stretch
        if death.is_certain:
            self._found(unit, str(death))
            return unit
        alone = self._death_anew(position, unit)
        if alone is None:
            return self._blame_before(start, units[: units.index(unit) + 1])
        self._found(unit, str(alone))
        return unit

    def _blame_before(self, start: Position, units: Sequence[ReadUnit]) -> ReadUnit | None:
        """Find the unit that does the damage at which a reader dies in the last one."""
        victim = units[-1]
        low, high = 0, len(units) - 1  # reading from `low` on it dies, from `high` on it survives
        death = self._death_anew(start, victim)
        if death is None:
            _LOG.warning("nothing near %s kills its reader a second time", victim.location)
            return None
        while high - low > 1:
            middle = (low + high) // 2
            found = self._death_anew(units[middle].first, victim)
            if found is None:
                high = middle
            else:
                low, death = middle, found
        self._found(units[low], f"{death}, a little later")
        return units[low]

    def _death_anew(self, first: Position, last: ReadUnit) -> TrialDiedError | None:
        self._reading.begin_anew()
        return self._death_of(first, last.end)

    def _death_of(self, first: Position, end: Position) -> TrialDiedError | None:
        try:
            self._reading.read(first, end)
        except TrialDiedError as death:
            return death
        return None
