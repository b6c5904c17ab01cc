"""A line that is followed, and what people do beside it: work on past windows, pauses, edits."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from support.growing import (
    BEGIN,
    DAY,
    HOUR,
    Following,
    following,
    links_of,
    publishing,
    require_exact,
    some_rows,
)
from support.independent import log_sums
from support.kills import kill_tree, used_rows
from support.there import eventually, there

from forebay.datatasks.plans.ledger import Ledger
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.lease import living_holder
from forebay.home.paths import Home

FIRST, SECOND = "2026-03-02T01", "2026-03-02T02"


@contextmanager
def followed_by(followed: Following) -> Iterator[list[str]]:
    """Another process follows the line, to the dataset's end; what it has printed by then."""
    said, run = list[str](), followed.project.start("run", "ads", "--follow")
    try:
        yield said
        said.append(run.communicate(timeout=120)[0])
        assert run.returncode == 0, said
    finally:
        kill_tree(followed.project, run)
        run.communicate()


def await_rows(followed: Following, window: str) -> None:
    eventually(lambda: bool(used_rows(followed.project, window)), 60)


def follow_until_it_has_rows(followed: Following) -> None:
    """Its job goes on without it."""
    run = followed.project.start("run", "ads", "--follow")
    await_rows(followed, FIRST)
    run.send_signal(signal.SIGINT)
    run.communicate(timeout=30)


def test_an_hour_is_trained_again_and_the_one_that_goes_on_starts_over(tmp_path: Path) -> None:
    followed = following(tmp_path, BEGIN, 300.0, plane="inline")
    project = followed.project
    with publishing(followed, 3), followed_by(followed) as said:
        await_rows(followed, SECOND)
        again = ("--from", FIRST, "--to", FIRST, "--reprocess")
        done = project.forebay("run", "ads", *again)
        assert f"window {SECOND}, which goes on, gives way" in done.stdout
    names = [(link.window, link.generation) for link in links_of(followed)]
    assert names == [(FIRST, 1), (FIRST, 2), (SECOND, 1)]
    newest = links_of(followed)[-1]
    assert there(newest.parent).generation == 2
    assert newest.seen["clicks"].model_dump() == log_sums(project.log, 0, 2**62)
    assert newest.seen["clicks"].rows == followed.published
    assert "giving way to other work on the line" in said[0]
    assert ModelChain(Home(project.home), "ads").pauses() == []


def test_a_line_that_is_paused_goes_on_where_it_was(tmp_path: Path) -> None:
    followed = following(tmp_path, BEGIN, 300.0, plane="inline")
    project = followed.project
    with publishing(followed, 3), followed_by(followed) as said:
        await_rows(followed, FIRST)
        project.forebay("jobs", "pause", "ads", "--why", "the network is serviced")
        eventually(lambda: not living_holder(Home(project.home), "ads", "main"), 30)
        told = project.forebay("why", "ads", FIRST).stdout
        assert "forebay jobs resume ads" in told
        assert "not paused" not in project.forebay("jobs", "resume", "ads").stderr
    require_exact(followed, 3)
    assert [link.generation for link in links_of(followed)] == [1, 1]
    assert "paused (the network is serviced), until `forebay jobs resume ads`" in said[0]
    assert "it was not paused" in project.forebay("jobs", "resume", "ads").stderr


@pytest.mark.chaos
def test_other_weights_count_from_the_newest_checkpoint_on(tmp_path: Path) -> None:
    """And other streams from the next window on: both are declared while the job goes on."""
    followed = following(tmp_path, BEGIN, 180.0)
    project = followed.project
    with publishing(followed, 3):
        follow_until_it_has_rows(followed)
        project.pipeline["dataset"]["streams"]["clicks"]["weight"] = 3
        project.write_pipeline()
        with followed_by(followed) as said:
            pass
    assert f"the declaration has changed: window {FIRST} continues" in said[0]
    require_exact(followed, 3)
    assert [link.generation for link in links_of(followed)] == [1, 1]


def test_streams_of_a_window_that_goes_on_stay_what_they_were(tmp_path: Path) -> None:
    followed = following(tmp_path, BEGIN, 180.0)
    project = followed.project
    with publishing(followed, 2):
        follow_until_it_has_rows(followed)
        project.pipeline["dataset"]["streams"]["history"]["offset"] = "23h"
        project.write_pipeline()
        with followed_by(followed) as said:
            pass
    assert "goes on with the streams that were declared when it began" in said[0]
    (link,) = links_of(followed)
    assert link.generation == 1
    assert link.seen["clicks"].model_dump() == log_sums(project.log, 0, 2**62)


def test_rows_that_are_deleted_once_they_are_trained_end_nothing(tmp_path: Path) -> None:
    """Retention of less than a window: only a scan of all of it would miss them."""
    followed = following(tmp_path, BEGIN, 300.0, plane="inline")
    project = followed.project
    with publishing(followed, 3), followed_by(followed):
        eventually(lambda: used_rows(project, FIRST) > 400, 60)
        for partition in sorted(project.log.iterdir()):
            for segment in sorted(partition.glob("*.arrow"))[:3]:
                segment.unlink()
    links = links_of(followed)
    assert [link.window for link in links] == [FIRST, SECOND]
    assert links[-1].seen["clicks"].rows == followed.published
    plan = Ledger(Home(project.home), "ads").plan(FIRST, 1)
    clicks = plan.sources["clicks"]
    assert clicks.rows == links[0].trained("clicks").rows
    assert {first for first, _ in clicks.offsets.values()} == {0}


def test_a_line_begins_with_the_first_hour_that_has_rows(tmp_path: Path) -> None:
    """One that is over is passed over, and so is one that went on without a row."""
    followed = following(tmp_path, BEGIN + HOUR, 360.0, rows=0, plane="inline")
    project = followed.project
    project.pipeline["dataset"]["streams"].pop("history")
    project.pipeline["train"]["paradigm"] = "stream"
    project.log.mkdir(parents=True)
    eventually(lambda: followed.now() > DAY + 3 * HOUR + timedelta(minutes=5), 30)
    followed.publish_at([DAY + 3 * HOUR], some_rows)
    with publishing(followed, 5):
        project.forebay("run", "ads", "--follow")
    assert [link.window for link in links_of(followed)] == ["2026-03-02T03", "2026-03-02T04"]
    assert links_of(followed)[-1].seen["clicks"].rows == followed.published


def test_who_follows_goes_on_from_no_stale_model(tmp_path: Path) -> None:
    """It would train windows that may never serve."""
    followed = following(tmp_path, BEGIN + 2 * HOUR, 120.0, plane="inline")
    project = followed.project
    project.pipeline["schedule"] = {"on_stale": "refuse"}
    project.write_pipeline()
    before = DAY + HOUR + timedelta(minutes=30)
    followed.publish_at([before, before + HOUR], some_rows)
    project.forebay("run", "ads", "--from", FIRST, "--to", SECOND)
    project.forebay("run", "ads", "--from", FIRST, "--to", FIRST, "--reprocess")
    refused = project.forebay("run", "ads", "--follow", check=False)
    assert refused.returncode == 1
    assert f"{SECOND}, which is stale" in refused.stderr
    assert f"--from {SECOND}" in refused.stderr
    assert len(links_of(followed)) == 3
