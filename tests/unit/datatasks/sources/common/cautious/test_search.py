"""Which unit is blamed for a death, for every kind of death."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forebay.datatasks.sources.common.cautious.search import (
    UNITS_MIN,
    PoisonSearch,
    ReaderDiedError,
)
from forebay.datatasks.tasks import Position, ReadUnit


def unit(offset: int) -> ReadUnit:
    return ReadUnit(
        first=Position(offset, 0), end=Position(offset + 1, 0), location={"offset": offset}
    )


class Scripted:
    """One row in each unit; dies of some of them, and of damage that others leave behind."""

    crashes = True

    def __init__(self, units: int, deadly: Collection[int], damaging: int | None = None) -> None:
        self.read_units: list[int] = []
        self.deaths = 0
        self.left_out: set[int] = set()
        self._count = units
        self._deadly = set(deadly)
        self._damaging = damaging
        self._begins: int | None = None

    def units(self, position: Position, count: int) -> Sequence[ReadUnit]:
        last = min(position.part + count, self._count)
        return [unit(offset) for offset in range(position.part, last)]

    def read(self, first: Position, end: Position) -> int:
        self._begins = first.part if self._begins is None else self._begins
        for offset in range(first.part, end.part):
            self.read_units.append(offset)
            damaged = (
                self._damaging is not None
                and self._damaging not in self.left_out
                and self._begins <= self._damaging < offset
            )
            if damaged or (offset in self._deadly and offset not in self.left_out):
                self.deaths += 1
                self._begins = None
                raise ReaderDiedError("killed", is_crash=self.crashes)
        return end.part - first.part

    def close(self) -> None:
        self._begins = None


def blamed(reading: Scripted, rows_min: int = 100, start: int = 0) -> list[int]:
    found: list[int] = []

    def take(each: ReadUnit, reason: str) -> None:
        assert reason.startswith("killed")
        found.append(each.first.part)
        reading.left_out.add(each.first.part)

    trial: Any = reading
    PoisonSearch(trial, rows_min, take, lambda *_: None).run(Position(start, 0))
    return found


@given(st.integers(1, 3000), st.sets(st.integers(0, 2999), max_size=6))
def test_all_near_the_place_are_blamed_and_nobody_else(units: int, deadly: set[int]) -> None:
    """Near: within the least number of units behind the place or behind the one before."""
    found = blamed(Scripted(units, deadly))
    assert set(found) <= deadly
    assert found == sorted(found)
    reach = -1
    for each in sorted(each for each in deadly if each < units):
        if each - reach <= UNITS_MIN:
            assert each in found
            reach = each


@pytest.mark.parametrize("deadly", [0, 1, 2, 511, 512, 999])
@pytest.mark.parametrize("crashes", [True, False])
def test_a_search_is_short(deadly: int, *, crashes: bool) -> None:
    reading = Scripted(1000, {deadly})
    reading.crashes = crashes
    assert blamed(reading) == [deadly]
    assert reading.deaths <= 5  # each costs the start of a process


def test_a_stretch_that_kills_is_searched_to_its_end() -> None:
    assert blamed(Scripted(3000, {UNITS_MIN + 480})) == [UNITS_MIN + 480]


def test_it_ends_a_few_rows_behind_the_place() -> None:
    reading = Scripted(100_000, {50_000})
    assert blamed(reading, rows_min=2_000, start=10_000) == []
    assert min(reading.read_units) >= 10_000
    assert max(reading.read_units) < 14_000
    assert reading.deaths == 0


@pytest.mark.parametrize("damaging", [0, 1, 20, 511, 598])
def test_of_damage_that_kills_later_its_cause_is_blamed(damaging: int) -> None:
    reading = Scripted(600, (), damaging=damaging)
    assert blamed(reading) == [damaging]
    assert reading.deaths <= 24


def test_a_death_that_does_not_come_again_is_nobodys() -> None:
    class Once(Scripted):
        def read(self, first: Position, end: Position) -> int:
            if not self.deaths and end.part > 100:
                self.deaths += 1
                raise ReaderDiedError("killed", is_crash=self.crashes)
            return super().read(first, end)

    assert blamed(Once(600, ())) == []
