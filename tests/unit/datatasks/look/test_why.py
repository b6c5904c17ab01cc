"""Why a window is not planned, in the order that is most useful to a person."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from support.model_lines import mark_trained
from support.stages import START, Stages, noon, stages, table

from forebay.datatasks.look.why import NotPlanned, why_not_planned
from forebay.datatasks.planning.listings import Listings
from forebay.datatasks.sources.memory.source import MEMORY

KEY = "2026-03-01"


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Stages]:
    with stages(tmp_path, ("a", "b"), source={"ready": {"wait": "15m"}}) as found:
        for name in ("a", "b"):
            MEMORY[name] = table([noon(0)])
        yield found


def why(project: Stages) -> NotPlanned:
    given = (project.root, project.pipeline, project.sources, project.ledger, project.window(0))
    return why_not_planned(*given, lambda: project.now)


def test_a_window_that_is_not_over_or_that_nobody_has_asked_for(project: Stages) -> None:
    project.now = project.window(0).end - timedelta(minutes=1)
    found = why(project)
    assert (found.state, found.next) == ("not over", "wait until it is over")
    assert found.reason == "the window ends at 2026-03-02T00:00Z, and it is now 2026-03-01T23:59Z"
    project.now = project.window(0).end
    found = why(project)
    assert (found.state, found.command) == ("not planned", "run")
    assert found.reason.startswith("no run has asked for it yet")


def test_a_source_that_is_late(project: Stages) -> None:
    project.late["b"] = START
    found = why(project)
    assert found.state == "waiting"
    assert "source 'b' is not complete for 2026-03-01T00:00Z to 2026-03-02T00:00Z" in found.reason
    assert found.reason.endswith("no marker")
    assert found.next == "a run waits 15m, then it fails"
    Listings(project.ledger).ask("b", KEY, "r#0", START)
    assert why(project).next == "its run waits until 2026-03-01T00:15:00Z, then it fails"


def test_a_late_source_that_may_be_skipped_or_that_breaks(tmp_path: Path) -> None:
    with stages(tmp_path, source={"ready": {"late": "skip"}}) as found:
        found.late["a"] = START
        assert why(found).next == "a run waits 0s, then it continues without these rows"
    with stages(tmp_path, source={"starts": "2026-04-01"}) as found:
        found.late["a"] = START
        assert why(found).state == "not planned", "the window has no rows of this source"


def test_its_run_is_planning_it(project: Stages) -> None:
    project.source(0, "a")
    found = why(project)
    assert found.reason == "its run is planning it: a listed, waiting for b"
    assert "if that has ended, run it, or create a backfill" in found.next
    assert found.command == "run", "its run may have been deleted since"
    project.source(0, "b")
    assert why(project).reason == "its run is planning it: a, b listed, waiting for the task sink"
    project.late["a"] = START
    assert why(project).state == "not planned", "what is listed is not looked at again"
    Listings(project.ledger).ask("a", KEY, "r#1", project.now + timedelta(seconds=1))
    assert why(project).state == "waiting", "a newer pass asks for it anew"


def test_a_plan_that_failed(project: Stages) -> None:
    project.ledger.note(KEY, "not planned", reason="first")
    project.ledger.note(KEY, "not planned", reason="disk full")
    project.ledger.note("2026-03-02", "not planned", reason="another window")
    found = why(project)
    assert "planning it failed before: disk full (" in found.reason
    assert found.command == "run"


def test_trained_windows_leave_no_listings(project: Stages) -> None:
    listings = Listings(project.ledger)
    for name in ("a", "b"):
        project.source(0, name)
    project.sink(0)
    for name in ("a", "b"):
        project.source(0, name, by="r#1")
        project.source(1, name, by="r#1")
    assert listings.windows()[KEY] == {"a", "b"}
    listings.drop_trained()
    assert listings.windows()[KEY] == {"a", "b"}, "not trained yet"
    MEMORY["b"] = table([noon(0), noon(0)])
    project.source(0, "b", by="r#2")
    mark_trained(project.ledger, KEY, 1)
    listings.drop_trained()
    assert listings.windows() == {KEY: {"b"}, "2026-03-02": {"a", "b"}}, "b has other rows now"
    project.source(0, "a", by="r#3")
    listings.drop_trained()
    assert listings.windows()[KEY] == {"a", "b"}, "asked for again since"
