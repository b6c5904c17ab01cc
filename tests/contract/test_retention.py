"""What is removed of older windows, and what never is, on each kind of database."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.exc import TimeoutError as PoolTimeout
from support.jobs import report_job, request, store_job
from support.links import AT, judgement, link
from support.model_lines import plan_empty, record
from support.stages import pipeline, replanned
from support.task_tables import record_tasks
from support.there import there

from forebay.config.load import Project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import ConfigError, InfrastructureError
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.submit import submit
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import FileKind, Link
from forebay.executors.model_line.start import require_checkpoint
from forebay.executors.retention import collect
from forebay.executors.retention.collect import LineRetention, collect_after
from forebay.executors.retention.home_garbage import find_garbage, remove_garbage
from forebay.executors.stages.claims import Claims
from forebay.home.paths import Home
from forebay.home.store.garbage import only_collector
from forebay.home.store.open import store_of
from forebay.system.files.locks import FileLock

KINDS: tuple[FileKind, ...] = ("checkpoint", "saved_model", "scores", "steps")
WARM = "2026-02-01_2026-03-01"


def key(day: int) -> str:
    return f"2026-03-{day:02}"


def declaring(home: Home, **pipelines: PipelineSpec) -> Project:
    return Project(home.root, home.root, {}, pipelines, [], {}, {})


def spec(kept: int = 2, **job: Any) -> PipelineSpec:
    return pipeline(("a",), job={"windows_kept": kept, **job})


class Line:
    """A line whose windows are trained one after the other, each from the newest before it."""

    def __init__(self, home: Home, name: str = "main") -> None:
        self.home, self.name = home, name
        self.ledger, self.chain = Ledger(home, "ads"), ModelChain(home, "ads", name)

    def train(self, *windows: str, judged: bool = True) -> None:
        store = store_of(self.home)
        for window in windows:
            generation = sum(link.window == window for link in self.chain.links()) + 1
            parent = self.chain.before(link(window))
            files = {kind: store.put(f"models/{window}", kind, b"x" * 10) for kind in KINDS}
            made = link(window, generation=generation, files=files)
            made = made.model_copy(update={"parent": parent.name if parent else None})
            record(self.chain, made)
            if judged:
                self.chain.judge(made, judgement(made))

    def days(self, first: int, last: int, **more: Any) -> None:
        self.train(*map(key, range(first, last + 1)), **more)

    def serve(self, day: int) -> None:
        assert not self.chain.publish(self.newest(day), AT)

    def newest(self, day: int) -> Link:
        return there(self.chain.newest(key(day)))

    def remove(self, declared: PipelineSpec | None = None) -> list[str]:
        found = LineRetention(self.home, declared or spec(), self.name).remove()
        return [f"{each.kind} {each.window}" for each in found]

    def left(self, kept: int = 1) -> list[str]:
        """Checkpoints, once what may go is removed."""
        self.remove(spec(kept))
        return self.having("checkpoint")

    def having(self, kind: FileKind) -> list[str]:
        return [
            f"{each.window} g{each.generation}" for each in self.chain.links() if kind in each.files
        ]

    def named(self) -> set[str]:
        return {each.name for one in self.chain.links() for each in one.files.values()}


@pytest.fixture
def line(home: Home) -> Line:
    return Line(home)


def test_files_of_the_newest_windows_stay(line: Line) -> None:
    line.days(1, 5)
    gone = line.remove(spec(3))
    assert sorted(gone) == sorted(f"{kind} {key(day)}" for kind in KINDS for day in (1, 2))
    for kind in KINDS:
        assert line.having(kind) == [f"{key(day)} g1" for day in (3, 4, 5)]
    assert set(store_of(line.home).names()) == line.named()
    assert [each.window for each in line.chain.links()] == [key(day) for day in range(1, 6)]
    assert line.remove(spec(3)) == []
    line.remove(spec(3, checkpoint={"windows_kept": 1}, publish={"windows_kept": 2}))
    found = {kind: len(line.having(kind)) for kind in KINDS}
    assert found == {"checkpoint": 1, "saved_model": 2, "scores": 3, "steps": 3}


def test_by_default_a_year_of_hours_stays_and_400_models() -> None:
    job = pipeline(("a",)).job
    assert (job.windows_kept, job.checkpoints_kept, job.exports_kept) == (10_000, 400, 400)
    job = spec(30).job
    assert (job.checkpoints_kept, job.exports_kept) == (30, 30)


def test_what_serves_stays_with_its_checkpoint(line: Line) -> None:
    line.days(1, 1)
    line.serve(1)
    line.days(2, 5)
    line.remove()
    assert line.having("saved_model") == [f"{key(day)} g1" for day in (1, 4, 5)]
    assert line.having("checkpoint") == [f"{key(day)} g1" for day in (1, 4, 5)]
    line.serve(5)
    line.remove()
    assert line.having("saved_model") == [f"{key(day)} g1" for day in (4, 5)]


def test_scores_stay_until_they_are_judged_and_while_labels_may_come(line: Line) -> None:
    line.days(1, 1, judged=False)
    line.days(2, 5)
    line.remove(spec(1))
    assert line.having("scores") == [f"{key(day)} g1" for day in (1, 4, 5)]
    streams = {"a": {"sources": ["a"], "offset": "48h"}}
    late = pipeline(("a",), job={"windows_kept": 1}, dataset={"streams": streams})
    line.days(6, 8)
    line.remove(late)
    assert line.having("scores") == [f"{key(day)} g1" for day in (1, 5, 6, 7, 8)]


def test_what_the_next_window_is_not_built_on_yet_can_be_built_on(line: Line) -> None:
    line.days(1, 5)
    line.train(key(2))  # the third window is stale now: its training begins here
    assert line.left() == [f"{key(2)} g2", f"{key(5)} g1"]
    line.train(key(3))
    assert line.left() == [f"{key(3)} g2", f"{key(5)} g1"]


def test_what_a_job_starts_from_stays_until_its_end(line: Line) -> None:
    line.days(1, 6)
    for day in (3, 4):
        plan_empty(line.ledger, key(day), 2)
    epoch = store_job(request(line.home, "job", {key(3): 2, key(4): 2}))
    assert line.left() == [f"{key(2)} g1", f"{key(6)} g1"]
    line.train(key(3))
    assert line.left() == [f"{key(3)} g2", f"{key(6)} g1"]
    line.train(key(4))
    # The last one is exported, and the fifth window has not been built on it yet.
    assert line.left() == [f"{key(4)} g2", f"{key(6)} g1"]
    line.train(key(5))
    assert line.left() == [f"{key(day)} g{g}" for day, g in ((4, 2), (5, 2), (6, 1))]
    report_job(line.home, "job", epoch, "succeeded")
    assert line.left() == [f"{key(5)} g2", f"{key(6)} g1"]


def test_a_window_whose_parent_went_is_refused_with_the_ways_out(line: Line) -> None:
    line.train(WARM, *map(key, range(1, 7)))
    line.remove()
    require_checkpoint(line.chain, line.chain.before(link(key(1))), 2)
    require_checkpoint(line.chain, line.chain.before(link(key(6))), 2)
    with pytest.raises(ConfigError) as refused:
        require_checkpoint(line.chain, line.chain.before(link(key(4))), 2)
    text = str(refused.value)
    assert f"window {key(3)} can no longer be built on" in text
    assert "(job.checkpoint.windows_kept is 2)" in text
    assert f"begin with the window after {key(5)}" in text
    assert f"--reprocess --from {key(1)}; in Airflow," in text


def test_another_line_and_another_pipeline_keep_theirs(home: Home, line: Line) -> None:
    other = Line(home, "other")
    line.days(1, 4)
    other.days(1, 4)
    before = other.named()
    line.remove(spec(1))
    assert other.named() == before
    assert before < set(store_of(home).names())


def test_plans_that_were_replaced_go_and_their_numbers_never_come_back(line: Line) -> None:
    line.days(1, 2)
    line.train(key(3))
    for _ in range(3):
        replanned(line.ledger, key(1))
    claims = Claims(line.ledger, key(1))
    assert claims.decide("early#0", renewed=None) == 4
    replanned(line.ledger, key(1))
    store_job(request(line.home, "job", {key(1): 3}))
    replanned(line.ledger, key(3))
    models = {"windows_kept": 9}
    gone = line.remove(spec(1, checkpoint=models, publish=models))
    assert [each for each in gone if each.startswith("plan")] == [f"plan {key(1)}"] * 2
    assert line.ledger.generations(key(1)) == [1, 3, 5], "trained, wanted by a job, newest"
    assert line.ledger.generations(key(3)) == [1, 2], "one of the newest windows"
    assert line.ledger.state(key(1)).next_generation == 6
    assert claims.generation("early#0") is None
    assert claims.decide("early#0", renewed=None) == 5


def test_tasks_that_a_newer_plan_shares_stay(line: Line) -> None:
    span = (link(key(1)).start, link(key(1)).end)
    record_tasks(line.ledger, key(1), span, {"history": [(0, 5)]})
    replanned(line.ledger, key(1))
    record_tasks(line.ledger, key(1), span, {"history": [(0, 6)]}, 3)
    replanned(line.ledger, key(1))
    line.days(2, 2)
    before = set(store_of(line.home).names())
    assert line.remove(spec(1)) == [f"plan {key(1)}"] * 3
    assert (line.ledger.generations(key(1)), len(line.ledger.tasks(key(1), 4))) == ([4], 1)
    assert len(before - set(store_of(line.home).names())) == 1


def test_folders_of_the_newest_jobs_stay_and_those_that_somebody_runs(line: Line) -> None:
    home, names = line.home, [f"job-{number}" for number in range(5)]
    for number, name in enumerate(names):
        state = "running" if number == 1 else "succeeded"
        job = request(home, name, {key(1): number + 1})
        store_job(job, state, submitted_at=AT + timedelta(number))
    held = FileLock(JobFolder(home.job("job-2")).supervisor_lock)
    assert held.acquire(1.0)
    assert line.remove(spec(1)) == ["job None", "job None"]
    left = {path.name for path in home.jobs.iterdir() if not path.name.startswith(".")}
    assert left == {"job-1", "job-2", "job-4"}
    held.release()
    assert line.remove(spec(1)) == ["job None"]
    assert not home.job("job-2").exists()


def test_a_job_whose_folder_went_gets_a_higher_epoch(line: Line, tmp_path: Path) -> None:
    home = line.home
    old = request(home, "old", {key(1): 1})
    store_job(old, "succeeded", submitted_at=AT)
    store_job(request(home, "new", {key(2): 1}), "succeeded")
    assert line.remove(spec(1)) == ["job None"]
    supervisor = tmp_path / "supervisor"
    supervisor.write_text("#!/bin/sh\nexit 3\n")
    supervisor.chmod(0o755)
    with pytest.raises(InfrastructureError, match="did not start"):
        submit(home, old, (str(supervisor),))
    assert JobFolder(home.job("old")).supervisor_log.exists()
    assert store_job(old) > 2


def test_what_is_listed_first_is_what_then_goes(line: Line) -> None:
    home = line.home
    line.days(1, 5)
    replanned(line.ledger, key(1))
    replanned(line.ledger, key(1))
    for day in (1, 2):
        home.model("ads", "main", key(day), 1).mkdir(parents=True)
    waits = home.model("ads", "main", key(6), 1)  # a job that failed continues there
    waits.mkdir(parents=True)
    plan_empty(line.ledger, key(6))
    garbage = store_of(home).put("models", "none", b"1")
    project, before = declaring(home, ads=spec()), set(store_of(home).names())
    told = find_garbage(home, project)
    assert (set(store_of(home).names()), find_garbage(home, project)) == (before, told)
    assert {each.kind for each in told.windows} == {*KINDS, "plan", "training"}
    assert told.unnamed.names == [garbage.name]
    removed = remove_garbage(home, project)
    assert sorted(removed.windows, key=str) == sorted(told.windows, key=str)
    places = {each.place for each in told.windows if each.kind in KINDS} | {garbage.name}
    assert before - set(store_of(home).names()) == places
    assert waits.is_dir()
    assert not home.model("ads", "main", key(1), 1).parent.exists()
    assert remove_garbage(home, project).windows == []


def test_a_pipeline_that_is_not_declared_keeps_everything(line: Line) -> None:
    line.days(1, 5)
    found = remove_garbage(line.home, declaring(line.home))
    assert found.windows == []
    (note,) = found.notes
    assert note.startswith("all windows of pipeline 'ads' are kept: it is not declared in")


def test_once_published_an_error_is_a_warning_in_the_log(
    line: Line, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    line.days(1, 4)
    with only_collector(line.home, 1.0):
        collect_after("window 4 is published", line.home, spec(), "main")
    with monkeypatch.context() as broken:
        refused = Mock(side_effect=PoolTimeout("no connection is free"))
        broken.setattr(collect, "forget_files", refused)
        collect_after("window 4 is published", line.home, spec(), "main")
    busy, failed = caplog.records
    assert busy.levelno == failed.levelno == logging.WARNING
    told = "window 4 is published, but files of older windows .*forebay gc"
    assert re.search(told, busy.getMessage())
    assert "no connection is free" in failed.getMessage()
    assert failed.exc_info
    assert len(line.having("checkpoint")) == 4
    collect_after("window 4 is published", line.home, spec(), "main")
    assert len(line.having("checkpoint")) == 2


@contextmanager
def statements() -> Iterator[list[str]]:
    seen: list[str] = []

    def note(_c: Any, _cursor: Any, statement: str, *_: Any) -> None:
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def test_as_many_statements_for_30_windows_as_for_5(home: Home) -> None:
    counts = []
    for name, windows in (("few", 5), ("many", 30)):
        line = Line(home, name)
        hours = [f"2026-03-{1 + n // 24:02}T{n % 24:02}" for n in range(windows)]
        hourly = pipeline(("a",), dataset={"window": "1h"}, job={"windows_kept": 3})
        line.train(*hours)
        line.remove(hourly)
        line.train("2026-04-01T00")
        with statements() as seen:
            assert len(line.remove(hourly)) == len(KINDS)
        counts.append(len(seen))
    assert counts[0] == counts[1] < 40


def begun_submission(home: Home, job_id: str, age: timedelta = timedelta(days=2)) -> JobFolder:
    """A folder that a submitter has prepared, and no row."""
    folder = JobFolder(home.job(job_id))
    folder.create()
    folder.prepare(request(home, job_id, {key(1): 1}), continues=False)
    then = time.time() - age.total_seconds()
    os.utime(folder.path, (then, then))
    return folder


def test_folders_of_submissions_that_died_before_their_row_go(line: Line) -> None:
    home = line.home
    project = declaring(home, ads=spec())
    store_job(request(home, "submitted", {key(1): 1}))
    day_before = time.time() - timedelta(days=2).total_seconds()
    os.utime(home.job("submitted"), (day_before, day_before))
    begun_submission(home, "just-now", timedelta(hours=1))
    dead = begun_submission(home, f"ads.main.{key(1)}.g1")
    held = begun_submission(home, "held")
    lock = FileLock(held.supervisor_lock)
    assert lock.acquire(1.0)
    os.utime(held.path, (day_before, day_before))
    told = find_garbage(home, project).windows
    assert {each.place for each in told} == {str(dead.path), str(held.path)}
    (gone,) = remove_garbage(home, project).windows
    assert (gone.kind, gone.pipeline, gone.line) == ("job", "ads", "main")
    assert gone.place == str(dead.path)
    left = {path.name for path in home.jobs.iterdir() if not path.name.startswith(".")}
    assert left == {"submitted", "just-now", "held"}
    lock.release()
    assert [each.place for each in remove_garbage(home, project).windows] == [str(held.path)]


def test_scores_stay_until_the_last_label_is_judged(line: Line) -> None:
    """A job of many windows judges them at its end: those before it wait for their labels."""
    line.days(1, 3)
    for day, complete in ((1, False), (2, True)):
        trained = line.newest(day)
        line.chain.judge(trained, judgement(trained, event={"complete": complete}))
    line.days(4, 6)
    line.remove(spec(1))
    assert line.having("scores") == [f"{key(day)} g1" for day in (1, 5, 6)]
