"""A line follows its stream: windows that grow while rows are published, exact when they close."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path

from support.growing import DAY, Following, following, some_rows
from support.independent import log_sums

from forebay.executors.model_line.chain import ModelChain
from forebay.home.paths import Home

HOUR = timedelta(hours=1)


def follow_until(followed: Following, end_hours: int) -> None:
    """Follow to the end of the dataset, and publish until a moment before."""
    project = followed.project
    project.pipeline["dataset"]["end"] = f"{DAY + end_hours * HOUR:%Y-%m-%dT%H:%M}"
    project.write_pipeline()
    until = DAY + end_hours * HOUR - timedelta(minutes=2)
    publishing = threading.Thread(target=followed.publish_until, args=(until, some_rows))
    publishing.start()
    done = project.forebay("run", "ads", "--follow", check=False)
    publishing.join(120)
    print(done.stdout, done.stderr)
    assert done.returncode == 0, done.stderr


def test_two_hours_that_grow_have_every_row_once(tmp_path: Path) -> None:
    followed = following(tmp_path, DAY + HOUR + timedelta(minutes=10), 360.0, plane="inline")
    follow_until(followed, 3)
    chain = ModelChain(Home(followed.project.home), "ads")
    links = list(chain.links())
    assert [link.window for link in links] == ["2026-03-02T01", "2026-03-02T02"]
    assert sum(link.trained("clicks").rows for link in links) == followed.published
    newest = links[-1]
    expected = log_sums(followed.project.log, 0, 2**62)
    assert newest.seen["clicks"].model_dump() == expected
