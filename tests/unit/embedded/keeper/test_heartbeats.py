"""What heartbeats and answers show of Airflow's components, on a clock of the test."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from forebay.embedded.airflow.components import (
    API_SERVER,
    DAG_PROCESSOR,
    REPORTED,
    SCHEDULER,
    TRIGGERER,
)
from forebay.embedded.keeper.heartbeats import FRESH_SECONDS, LOOK_SECONDS, ComponentSigns, Look
from forebay.system.processes.hangs import HangWatch

DEADLINE = 300.0
STARTING = 600.0
HOUR = 3600


def report(beat: str = "", *, database: str = "healthy", **others: str) -> dict[str, object]:
    """As Airflow writes it: one beat for all but those that have their own."""
    beats = dict.fromkeys(REPORTED.values(), beat) | others
    parts = {
        name: {"status": "healthy", f"latest_{name}_heartbeat": value}
        for name, value in beats.items()
    }
    return {"metadatabase": {"status": database}, **parts}


def beat_at(second: float) -> str:
    return f"2026-03-01T{int(second) // HOUR:02}:{int(second) // 60 % 60:02}:{int(second) % 60:02}Z"


class Story:
    """A keeper that looks each second at what a health thread found every few seconds."""

    def __init__(self, name: str) -> None:
        self.now = 0.0
        self.answers = 0
        self.look: Look | None = None
        self.signs = ComponentSigns(name, lambda: self.look, lambda: self.now)
        self.begin()

    def begin(self) -> None:
        self.signs.forget()
        self.watch = HangWatch(DEADLINE, self.now, STARTING)

    def until(self, end: float, found: Callable[[float], Look | None]) -> str | None:
        """The first reason, and the clock stands where it was found."""
        while self.now < end:
            self.now += 1
            if self.now % LOOK_SECONDS == 0:
                self.look = found(self.now) or self.look
            if reason := self.watch.reason(self.signs.read(), self.now):
                return reason
        return None

    def healthy(self, second: float) -> Look:
        self.answers += 1
        return Look(second, self.answers, report(beat_at(second)))

    def stopped_since(self, then: float, name: str) -> Callable[[float], Look]:
        def found(second: float) -> Look:
            self.answers += name != API_SERVER
            mine = {REPORTED[name]: beat_at(then)} if name in REPORTED else {}
            there = report(beat_at(second), **mine) if name != API_SERVER else None
            return Look(second, self.answers, there)

        return found


@pytest.fixture(params=[API_SERVER, SCHEDULER, TRIGGERER, DAG_PROCESSOR])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def story(name: str) -> Story:
    """One that has been healthy for an hour."""
    story = Story(name)
    assert story.until(HOUR, story.healthy) is None
    return story


def test_one_that_hangs_is_found_at_its_deadline(name: str, story: Story) -> None:
    assert story.until(2 * HOUR, story.stopped_since(HOUR, name)) == "no sign of life for 301 s"
    assert HOUR + DEADLINE < story.now <= HOUR + DEADLINE + 2 * LOOK_SECONDS


def test_one_that_is_as_slow_as_half_its_deadline_is_left_alone(name: str, story: Story) -> None:
    for start in range(HOUR, 4 * HOUR, int(DEADLINE)):
        assert story.until(start + DEADLINE / 2, story.healthy) is None
        hangs = story.stopped_since(start + DEADLINE / 2, name)
        assert story.until(start + DEADLINE, hangs) is None


def test_others_are_not_judged_by_it(name: str) -> None:
    """An API server that hangs tells nothing of the others, nor they of each other."""
    for other in sorted({API_SERVER, *REPORTED} - {name}):
        story = Story(other)
        assert story.until(HOUR, story.healthy) is None
        assert story.until(3 * HOUR, story.stopped_since(HOUR, name)) is None


@pytest.mark.guarantee(
    "the database of `forebay up` is away, the machine sleeps, or a part of Airflow is slow or "
    "starting",
    "nothing; no part is ended",
)
@pytest.mark.parametrize("database", ["away", "unhealthy"])
def test_a_database_that_is_away_is_nobodys_hang(name: str, story: Story, database: str) -> None:
    def away(second: float) -> Look:
        if database == "away":
            return Look(second, None, None)
        story.answers += 1
        return Look(second, story.answers, report(beat_at(HOUR), database="unhealthy"))

    assert story.until(5 * HOUR, away) is None
    # Back again, and everybody has the whole deadline to beat.
    assert story.until(5 * HOUR + DEADLINE / 2, story.stopped_since(HOUR, name)) is None
    assert story.until(6 * HOUR, story.healthy) is None


def test_looks_that_do_not_come_tell_nothing(story: Story) -> None:
    assert story.until(5 * HOUR, lambda _: None) is None
    assert FRESH_SECONDS < DEADLINE


def test_a_machine_that_slept_has_the_whole_deadline(name: str, story: Story) -> None:
    """A steady clock that went on meanwhile, as in a container that was frozen."""
    story.now += 8 * HOUR
    old = story.stopped_since(HOUR, name)
    woke = story.now
    assert story.until(woke + DEADLINE - 2 * LOOK_SECONDS, old) is None
    assert story.until(woke + 2 * HOUR, story.healthy) is None


def test_a_clock_of_the_day_that_jumps_back_shows_life(story: Story) -> None:
    def an_hour_earlier(second: float) -> Look:
        story.answers += 1
        return Look(second, story.answers, report(beat_at(second - HOUR)))

    assert story.until(3 * HOUR, an_hour_earlier) is None


def test_a_start_takes_its_time_and_the_beat_of_the_one_before_is_none(
    name: str, story: Story
) -> None:
    story.begin()
    starting = story.stopped_since(HOUR, name)
    assert story.until(HOUR + STARTING - 2 * LOOK_SECONDS, starting) is None
    assert story.until(2 * HOUR, starting) == "no sign of life for 601 s after its start"
