"""Models of windows that had not ended: when they serve, and what takes them away."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.links import AT, link
from support.model_lines import plan_empty, record
from support.serving_line import put_model
from support.stages import pipeline
from support.there import there

from forebay.config.load import Project
from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import FencedError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import InnerExport, Link, Parent, ServedModel
from forebay.executors.model_line.rows.pause_rows import BY_PEOPLE
from forebay.executors.serving.switch import Serving
from forebay.home.home_check import HomeCheck
from forebay.home.paths import Home
from forebay.home.store import garbage
from forebay.home.store.base import Stored
from forebay.home.store.open import store_of

FIRST, SECOND, THIRD = "2026-03-01", "2026-03-02", "2026-03-03"


class Line:
    """A line whose first window is trained and serves."""

    def __init__(self, home: Home, windows: int = 1) -> None:
        self.home, self.chain = home, ModelChain(home, "ads")
        for window in (FIRST, SECOND, THIRD)[:windows]:
            self.train(window)

    def train(self, window: str, generation: int = 1) -> Link:
        before = self.chain.before(link(window))
        parent = (before.window, before.generation) if before else None
        model = put_model(self.home, f"{window} g{generation}")
        made = link(window, generation=generation, parent=parent, files={"saved_model": model})
        record(self.chain, made)
        self.chain.publish(made, AT)
        return made

    def export(
        self, window: str, step: int, parent: str = FIRST, generation: int = 1, of: int = 1
    ) -> str:
        """Why it does not serve. of: the generation of the window before."""
        plan_empty(Ledger(self.home, "ads"), window, generation)
        span = link(window)
        export = InnerExport(
            window=window,
            generation=generation,
            step=step,
            start=span.start,
            end=span.end,
            newest_at=AT,
            exported_at=AT + timedelta(seconds=step),
            stored=put_model(self.home, f"{window} at {step}"),
        )
        return self.chain.publish_inside(export, Parent(window=parent, generation=of))

    @property
    def serves(self) -> tuple[str, int, int]:
        found = there(self.chain.published())
        return found.window, found.generation, found.step

    @property
    def steps(self) -> list[int]:
        return [each.step for each in self.chain.exports()]

    def people(self) -> Serving:
        spec = pipeline(("a",))
        project = Project(self.home.root, self.home.root, {}, {"ads": spec}, [], {}, {})
        return Serving(project, spec, self.chain)

    def stored(self) -> list[Stored]:
        return [each.stored for each in self.chain.exports()]


def test_they_serve_until_their_window_has_ended(home: Home) -> None:
    line = Line(home)
    for step in range(1, 6):
        assert line.export(SECOND, step) == ""
        assert line.serves == (SECOND, 1, step)
    assert line.steps == [3, 4, 5], "a few are kept, for a rollback"
    line.train(SECOND)
    assert line.serves == (SECOND, 1, 0)
    assert all(store_of(home).is_there(each) for each in line.stored())
    assert not set(garbage.collect(home).names) & {each.name for each in line.stored()}
    assert list(HomeCheck(home).faults()) == []
    assert all(store_of(home).is_there(each) for each in line.stored())


def test_nothing_serves_before_the_first_window_has_ended(home: Home) -> None:
    line = Line(home, windows=0)
    plan_empty(Ledger(home, "ads"), FIRST)
    assert line.export(FIRST, 1) == "no window of the line serves yet"
    assert (line.chain.published(), line.steps) == (None, [])


def test_a_window_that_starts_over_gives_way_to_the_newest_link(home: Home) -> None:
    line = Line(home)
    line.export(SECOND, 1)
    line.export(SECOND, 2)
    assert line.chain.withdraw(SECOND, AT)
    assert (line.serves, line.steps) == ((FIRST, 1, 0), [])
    assert line.chain.switches()[-1].action == "withdraw"
    assert line.chain.switches()[-1].why == f"window {SECOND} starts over"
    assert not line.chain.withdraw(SECOND, AT)
    assert line.export(SECOND, 1, generation=2) == ""
    assert line.serves == (SECOND, 2, 1)


@pytest.mark.parametrize("window", [FIRST, SECOND])
def test_a_window_before_that_is_trained_again_takes_them_away(home: Home, window: str) -> None:
    line = Line(home, windows=2)
    line.export(THIRD, 1, parent=SECOND)
    line.train(window, generation=2)
    generation = 2 if window == SECOND else 1
    assert (line.serves, line.steps) == ((SECOND, generation, 0), [])
    refused = line.export(THIRD, 2, parent=SECOND, of=generation - 1 or 1)
    if window == SECOND:
        assert refused == f"stale (built on generation 1 of {SECOND})"
        assert line.serves == (SECOND, 2, 0)


def test_another_generation_of_its_window_takes_them_away(home: Home) -> None:
    line = Line(home)
    line.export(SECOND, 1)
    line.train(SECOND, generation=2)
    assert (line.serves, line.steps) == ((SECOND, 2, 0), [])


def test_people_go_back_to_one_that_is_kept_and_it_stays(home: Home) -> None:
    line = Line(home)
    for step in (1, 2):
        line.export(SECOND, step)
    line.people().roll_back("the second is bad")
    assert line.serves == (SECOND, 1, 1)
    assert "pinned" in line.export(SECOND, 3)
    assert "step 1 of window" not in line.people().words()[0]
    assert "generation 1 of window 2026-03-02, step 1 serves" in line.people().words()[0]
    line.train(SECOND)
    assert line.serves == (SECOND, 1, 1), "whatever is pinned stays"
    line.chain.withdraw(SECOND, AT)
    assert line.serves == (SECOND, 1, 1)
    assert store_of(home).is_there(there(line.chain.published()).stored)
    line.people().unpin()
    line.people().roll_back()
    assert line.serves == (FIRST, 1, 0)


def test_only_the_trainer_of_the_line_lets_them_serve(home: Home) -> None:
    line = Line(home)
    line.chain = ModelChain(home, "ads", lease_epoch=7)  # long ago
    with pytest.raises(FencedError):
        line.export(SECOND, 1)
    assert line.serves == (FIRST, 1, 0)


def test_a_line_that_begins_anew_serves_on(home: Home) -> None:
    line = Line(home)
    line.export(SECOND, 1)
    line.chain.begin_anew(forget_plans=True)
    assert (line.serves, line.steps) == ((SECOND, 1, 1), [])
    assert store_of(home).is_there(there(line.chain.published()).stored)
    assert there(line.chain.published()).model == ServedModel(window=SECOND, generation=1, step=1)


def test_a_window_that_continues_from_an_older_seal_takes_back_what_came_after(home: Home) -> None:
    """Of another host, say: the steps between are taken once more."""
    line = Line(home)
    for step in (80, 100):
        line.export(SECOND, step)
    assert not line.chain.withdraw(SECOND, AT, after=100)
    assert line.chain.withdraw(SECOND, AT, after=80)
    assert (line.serves, line.steps) == ((FIRST, 1, 0), [80])
    line.export(SECOND, 100)
    line.people().roll_back()
    assert line.serves == (FIRST, 1, 0), "never the one that was taken back"


def test_a_training_that_is_thrown_away_serves_no_longer(home: Home) -> None:
    line = Line(home)
    line.export(SECOND, 1)
    line.chain.drop_seal(SECOND, 1)
    assert (line.serves, line.steps) == ((FIRST, 1, 0), [])


def test_a_pause_counts_until_it_is_taken_back_or_over(home: Home) -> None:
    chain = ModelChain(home, "ads")
    assert (chain.pauses(), chain.is_paused(), chain.resume(BY_PEOPLE)) == ([], False, False)
    chain.pause(BY_PEOPLE, "the network is serviced")
    chain.pause("host/1", "window 1 is trained again", seconds=60)
    chain.pause("host/2", "gone", seconds=-1)
    assert [each.asked_by for each in chain.pauses()] == [BY_PEOPLE, "host/1"]
    assert chain.is_paused()
    chain.pause(BY_PEOPLE, "longer")
    assert chain.pauses()[0].why == "longer"
    assert chain.resume(BY_PEOPLE)
    assert (chain.is_paused(), len(chain.pauses())) == (False, 1)
    assert ModelChain(home, "ads", "other").pauses() == [], "of another line"
