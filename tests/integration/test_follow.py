"""A line follows its stream: windows that grow while rows are published, exact when they close."""

from __future__ import annotations

import threading
from collections.abc import Callable
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
from support.independent import kafka_sums, log_sums
from support.kills import used_rows
from support.projects import Project, Topic, history_source
from support.there import eventually

from forebay.datatasks.plans.ledger import Ledger
from forebay.executors.job.submit import attach
from forebay.home.paths import Home


def test_hours_that_grow_have_every_row_once(tmp_path: Path) -> None:
    followed = following(tmp_path, BEGIN, 720.0, plane="inline")
    with publishing(followed, 3):
        done = followed.project.forebay("run", "ads", "--follow")
    require_exact(followed, 3)
    assert "window 2026-03-02T01 is trained" in done.stdout


@pytest.mark.kafka
def test_a_topic_with_late_and_future_stamps(
    tmp_path: Path, kafka_bootstrap: str, new_topic: Callable[..., str]
) -> None:
    """A record that comes after its slice or window was planned is in the next one, and counted."""
    topic = Topic(kafka_bootstrap, new_topic(2))
    followed = following(tmp_path, BEGIN, 360.0, topic=topic, plane="inline")
    with publishing(followed, 3):
        followed.project.forebay("run", "ads", "--follow")
    links = links_of(followed)
    assert len(links) == 2
    assert links[-1].seen["clicks"].rows == followed.published
    expected = kafka_sums(topic.bootstrap, topic.name, 0, 2**62)
    assert links[-1].seen["clicks"].model_dump() == expected
    assert sum(link.read["clicks"].late for link in links) > 0


def test_after_a_pause_the_hours_that_were_missed_come_first(tmp_path: Path) -> None:
    """They are over, so they are planned and trained as any window is."""
    followed = following(tmp_path, BEGIN + 2 * HOUR, 720.0, plane="inline")
    before = DAY + HOUR + timedelta(minutes=30)
    followed.publish_at([before, before + HOUR], some_rows)
    with publishing(followed, 5):
        followed.project.forebay("run", "ads", "--follow")
    require_exact(followed, 5)


def test_only_a_continuous_line_is_followed(tmp_path: Path) -> None:
    followed = following(tmp_path, BEGIN, 1.0)
    project = followed.project
    asked = ("run", "ads", "--follow", "--from", "2026-03-02T01")
    assert "takes no --from" in project.forebay(*asked, check=False).stderr
    project.pipeline["job"]["process"] = "standing"
    project.write_pipeline()
    refused = project.forebay("run", "ads", "--follow", check=False)
    assert refused.returncode == 1
    assert "declare job.process: continuous" in refused.stderr


def late_history(followed: Following, **ready: str) -> None:
    spec = history_source(ready={"marker": "_SUCCESS", "wait": "5m", **ready})
    followed.project.write_source("history", spec)


def test_history_that_is_late_comes_into_the_window_once_it_is_complete(tmp_path: Path) -> None:
    followed = following(tmp_path, BEGIN, 720.0, plane="inline")
    late_history(followed)
    marker = followed.project.files / "_SUCCESS"
    mark = threading.Timer(1.5, marker.touch)  # 18 minutes later
    mark.start()
    with publishing(followed, 2):
        followed.project.forebay("run", "ads", "--follow")
    mark.join()
    require_exact(followed, 2)


def test_history_that_never_comes_is_left_out_after_the_window_or_ends_it(tmp_path: Path) -> None:
    followed = following(tmp_path / "skips", BEGIN + HOUR / 2, 720.0, plane="inline")
    late_history(followed, late="skip")
    with publishing(followed, 2):
        followed.project.forebay("run", "ads", "--follow")
    (link,) = links_of(followed)
    assert link.seen["clicks"].model_dump() == log_sums(followed.project.log, 0, 2**62)
    assert link.seen["history"].rows == 0
    plan = Ledger(Home(followed.project.home), "ads").plan(link.window, link.generation)
    assert plan.sources["history"].reason.startswith("skipped: ")
    failing = following(tmp_path / "fails", BEGIN + HOUR / 2, 720.0, plane="inline")
    late_history(failing)
    with publishing(failing, 2):
        done = failing.project.forebay("run", "ads", "--follow", check=False)
    assert done.returncode != 0
    assert "source 'history' is not complete after 5m" in done.stderr
    assert links_of(failing) == []


def follow_and_cancel(project: Project) -> None:
    """Until the first window has rows."""

    def cancel() -> None:
        eventually(lambda: bool(used_rows(project, "2026-03-02T01")), 20)
        attach(Home(project.home), "ads.main.2026-03-02T01.g1").cancel()

    cancelling = threading.Thread(target=cancel)
    cancelling.start()
    assert project.forebay("run", "ads", "--follow", check=False).returncode != 0
    cancelling.join(30)


def test_who_follows_may_be_gone_for_a_while(tmp_path: Path) -> None:
    """A cancelled job says what to do, and the same window goes on from its newest checkpoint."""
    followed = following(tmp_path, BEGIN, 360.0, plane="inline")
    project = followed.project
    with publishing(followed, 2):
        follow_and_cancel(project)
        told = project.forebay("why", "ads", "2026-03-02T01").stdout
        assert "goes on until 2026-03-02T02:00Z, and nothing follows it" in told
        assert "forebay run ads --follow" in told
        project.forebay("run", "ads", "--follow")
    require_exact(followed, 2)
    assert links_of(followed)[0].generation == 1


def test_other_streams_start_the_window_over(tmp_path: Path) -> None:
    followed = following(tmp_path, BEGIN, 360.0, plane="inline")
    project = followed.project
    with publishing(followed, 2):
        follow_and_cancel(project)
        project.pipeline["dataset"]["streams"]["history"]["offset"] = "23h"
        project.write_pipeline()
        project.forebay("run", "ads", "--follow")
    (link,) = links_of(followed)
    assert link.generation == 2
    assert link.seen["clicks"].model_dump() == log_sums(project.log, 0, 2**62)


def test_a_window_that_was_left_open_is_trained_like_any_other_that_is_over(tmp_path: Path) -> None:
    """By `forebay run`, as by Airflow's run of it: from the plan that it was opened with."""
    followed = following(tmp_path, BEGIN, 720.0, plane="inline")
    project = followed.project
    with publishing(followed, 2):
        follow_and_cancel(project)
    eventually(lambda: followed.now() > DAY + 2 * HOUR + timedelta(minutes=2), 30)
    done = project.forebay("run", "ads", "--from", "2026-03-02T01", "--to", "2026-03-02T01")
    assert "1 to train" in done.stdout
    require_exact(followed, 2)
    assert links_of(followed)[0].generation == 1
