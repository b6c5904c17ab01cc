"""Borders in the database: one answer for every caller, permanently."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select
from support.task_tables import source_plan

from forebay.datatasks.planning.border_rows import DecidedBorders
from forebay.datatasks.plans.plan import WindowPlan
from forebay.datatasks.plans.plan_rows import forget, store_plan
from forebay.datatasks.sources.common.contract.borders import Border
from forebay.home.database.open import database_of
from forebay.home.database.tables import borders
from forebay.home.paths import Home

START = datetime(2026, 3, 1, tzinfo=UTC)


def at(hour: int, partition: str = "0") -> Border:
    return Border(partition, START + timedelta(hours=hour))


def of(home: Home, source: str = "clicks", *, only_look: bool = False) -> DecidedBorders:
    return DecidedBorders(database_of(home), "ads", source, only_look=only_look)


def test_the_first_decision_holds(home: Home) -> None:
    assert of(home).decide("t", {at(0): 5, at(1): 9}) == {at(0): 5, at(1): 9}
    assert of(home).decide("t", {at(0): 7, at(1): 30, at(2): 40}) == {at(0): 5, at(1): 9, at(2): 40}


def test_a_later_decision_stays_between_its_neighbours(home: Home) -> None:
    of(home).decide("t", {at(0): 5, at(4): 20})
    assert of(home).decide("t", {at(1): 3, at(2): 50, at(3): 10}) == {
        at(1): 5,
        at(2): 20,
        at(3): 20,
    }
    assert of(home).decide("t", {at(-1): 9, at(6): 1}) == {at(-1): 5, at(6): 20}


def test_near_are_those_asked_for_and_the_ones_around_them(home: Home) -> None:
    assert of(home).near("t", [at(2)]) == {}
    of(home).decide("t", {at(hour): hour for hour in range(6)})
    of(home).decide("t", {at(2, "1"): 7})
    assert of(home).near("t", [at(2), at(3)]) == {at(hour): hour for hour in (1, 2, 3, 4)}
    assert of(home).near("t", [at(9)]) == {at(5): 5}


def test_topics_sources_and_partitions_have_their_own(home: Home) -> None:
    of(home).decide("t", {at(0): 5})
    assert of(home).near("made anew", [at(0)]) == {}
    assert of(home, "views").near("t", [at(0)]) == {}
    assert of(home).near("t", [at(0, "1")]) == {}


def test_who_only_looks_decides_nothing(home: Home) -> None:
    looking = of(home, only_look=True)
    assert looking.decide("t", {at(0): 5}) == {at(0): 5}
    of(home).decide("t", {at(0): 8})
    assert looking.decide("t", {at(0): 5, at(1): 3}) == {at(0): 8, at(1): 8}
    count = select(func.count()).select_from(borders)
    assert database_of(home).read(lambda rows: rows.scalar(count)) == 1


def test_until_when_others_decided(home: Home) -> None:
    assert of(home).latest_other("t") is None
    of(home).decide("t", {at(0): 5, at(3): 9, at(1, "1"): 2})
    of(home, "views").decide("t", {at(9): 1})
    assert of(home).latest_other("t") is None
    assert of(home).latest_other("made anew") == ("t", at(3).instant)
    assert of(home).partitions("t") == {"0": at(3).instant, "1": at(1).instant}


def planned(home: Home, hour: int, uses: dict[str, dict[str, str]], generation: int = 1) -> None:
    """A plan of an hour, with the last segments of each use of a source."""
    start, end = at(hour).instant, at(hour + 1).instant
    sources = {
        use: source_plan(use, (start, end), []).model_copy(update={"last_segments": of})
        for use, of in uses.items()
    }
    facts = {"window": f"{hour}", "generation": generation, "start": start, "end": end}
    plan = WindowPlan.model_validate({**facts, "sources": sources, "fingerprint": ""})
    database_of(home).transact(lambda rows: store_plan(rows, "ads", "main", plan, {}))


def test_the_last_segment_of_each_partition_that_any_plan_knows(home: Home) -> None:
    planned(home, 0, {"clicks": {"log/0/3": "a", "log/1/3": "b", "old/2/9": "c"}})
    for hour in range(1, 50):
        planned(home, hour, {"clicks": {"log/0/5": "d"}, "views": {"log/1/8": "e"}})
    planned(home, 50, {"clicks": {"log/0/6": "f"}, "clicks@s": {"log/0/7": "g"}})
    clicks = of(home)
    assert clicks.last_segments(["0"], "log") == {"log/0/7": "g"}
    assert clicks.last_segments(["0", "1", "2"], "log") == {"log/0/7": "g", "log/1/3": "b"}
    assert clicks.last_segments(["2"], None) == {"old/2/9": "c"}
    assert clicks.last_segments([], None) == {}


def test_last_segments_stay_when_their_plans_are_forgotten(home: Home) -> None:
    planned(home, 0, {"clicks": {"log/0/3": "a"}, "views": {"log/1/8": "e"}})
    planned(home, 0, {"clicks": {}, "views": {"log/1/9": "f"}}, generation=2)
    assert database_of(home).transact(lambda rows: forget(rows, "ads", "main", "0"))
    assert of(home).last_segments(["0"], "log") == {"log/0/3": "a"}
    assert of(home, "views").last_segments(["1"], "log") == {"log/1/9": "f"}
