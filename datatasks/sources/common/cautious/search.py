"""Which parts of what is read kill their reader: they are read in a child that may die of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from forebay.datatasks.tasks import Position

# A decoder may take any number of messages at a time: the one that died was at most so far ahead.
UNITS_MIN = 1024
STRETCH_MAX = 512


class SearchUnit(Protocol):
    @property
    def first(self) -> Position: ...

    @property
    def end(self) -> Position: ...


_U = TypeVar("_U", bound=SearchUnit)
_U_co = TypeVar("_U_co", bound=SearchUnit, covariant=True)


class ReaderDiedError(Exception):
    """The child died, of what it has just read or of what it had read before.

    is_crash: by itself. Otherwise the kernel may have killed it when memory ran out, whichever
    process took it, or this process, for the memory or time that it took.
    """

    def __init__(self, reason: str, *, is_crash: bool) -> None:
        super().__init__(reason)
        self.is_crash = is_crash


class UnitReader(Protocol[_U_co]):
    """Reads units in a child, and starts another when it dies. Those that were found are left out.

    `units`: the next ones, at most so many. `read`: how many rows there were; ReaderDiedError when
    the child dies of them. `close`: ends the child; what is read next is read by another one.
    """

    def units(self, position: Position, count: int) -> Sequence[_U_co]: ...

    def read(self, first: Position, end: Position) -> int: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class PoisonSearch(Generic[_U]):
    """Searches from the place where a process died.

    A unit is blamed only if a fresh process died reading it: of the unit alone, or of the units
    after it, which are harmless without it.

    rows_min: the search ends this many rows after the place, or after the last poison.
    found: called with each poison and the reason, before the search continues. unexplained: with a
    unit at which a reader died that nothing near it kills a second time.
    stretch_max: the most units that are read at a time, until a reader dies of them.
    """

    reader: UnitReader[_U]
    rows_min: float
    found: Callable[[_U, str], None]
    unexplained: Callable[[_U, str], None]
    stretch_max: int = STRETCH_MAX

    def run(self, position: Position) -> None:
        """Search from a position on, until nothing near it kills a reader."""
        poison = self._next_after(position)
        while poison is not None:
            poison = self._next_after(max(position, poison.end))

    def _next_after(self, start: Position) -> _U | None:
        """The next poison, once it is reported; None if none is near."""
        rows, length, position, slow_until = 0, 1, start, start
        passed: list[_U] = []
        last: ReaderDiedError | None = None
        is_fresh = True  # of the child: it has read nothing else
        while position < slow_until or rows < self.rows_min or len(passed) < UNITS_MIN:
            stretch = self.reader.units(position, length)
            if not stretch:
                return None
            poison = None
            try:
                rows += self.reader.read(position, stretch[-1].end)
            except ReaderDiedError as death:
                if len(stretch) > 1:  # they are read again, fewer at a time
                    last, length, slow_until = death, len(stretch) // 8 or 1, stretch[-1].end
                    is_fresh = True
                    continue
                units, last = [*passed, *stretch], None
                alone = death if is_fresh and death.is_crash else None
                poison = self._alone(position, stretch[0], alone)
                poison = poison or self._before(start, units, death)
            passed += stretch
            position, is_fresh = stretch[-1].end, False
            if position >= slow_until:
                length = min(2 * length, self.stretch_max)
                if last is not None:  # none of them alone: one before them
                    poison, last = self._before(start, passed, last), None
            if poison is not None:
                return poison
        return None

    def _alone(self, position: Position, unit: _U, death: ReaderDiedError | None) -> _U | None:
        """The unit, if a fresh child dies of it. death: of such a one, if there was."""
        death = death or self._death_anew(position, unit)
        if death is not None:
            self.found(unit, str(death))
        return None if death is None else unit

    def _before(self, start: Position, units: Sequence[_U], last: ReaderDiedError) -> _U | None:
        """Find the unit that does the damage at which a reader died, no later than in the last."""
        victim = units[-1]
        low, high = 0, len(units)  # reading from `low` on it dies, from `high` on it survives
        death = self._death_anew(start, victim)
        if death is None:
            self.unexplained(victim, str(last))
            return None
        while high - low > 1:
            middle = (low + high) // 2
            found = self._death_anew(units[middle].first, victim)
            if found is None:
                high = middle
            else:
                low, death = middle, found
        self.reader.close()
        self.found(units[low], f"{death}, a little later")
        return units[low]

    def _death_anew(self, first: Position, last: _U) -> ReaderDiedError | None:
        self.reader.close()  # nothing that was read before may matter
        try:
            self.reader.read(first, last.end)
        except ReaderDiedError as death:
            return death
        return None
