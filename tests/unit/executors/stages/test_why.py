"""Why a window is not done: one answer for each state, and the command that continues from it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.jobs import ToldJob, failed
from support.links import link
from support.model_lines import keep_checkpoint, record, record_link
from support.stages import Stages, noon, stages, table

from forebay.datatasks.sources.memory.source import MEMORY
from forebay.errors import DataError, NotReadyError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.lease import LEASE_NAME
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.stages.target import LineTarget
from forebay.executors.stages.why import Why, why_window
from forebay.home.store.base import Stored
from forebay.system.files.locks import FileLock

FIRST, SECOND, THIRD = "2026-03-01", "2026-03-02", "2026-03-03"
NOW = datetime(2026, 4, 1, tzinfo=UTC)


@pytest.fixture
def found(tmp_path: Path) -> Iterator[Stages]:
    with stages(tmp_path, ("a", "b"), source={"ready": {"wait": "2h"}}) as each:
        MEMORY["a"] = MEMORY["b"] = table([noon(0), noon(1)])
        yield each


def why(found: Stages, number: int = 0, line: str = "main") -> Why:
    target = LineTarget(found.project, found.pipeline, found.home, line)
    return why_window(target.at(found.window(number)), lambda: found.now)


def plan(found: Stages, number: int = 0) -> None:
    for name in found.sources:
        found.source(number, name)
    found.sink(number)


def train(found: Stages, key: str, generation: int = 1, *, after: str | None = None) -> None:
    chain = ModelChain(found.home, "ads")
    fingerprint = model_fingerprint_of(found.pipeline, found.project.sources)
    more = {"parent": (after, 1) if after else None, "model_fingerprint": fingerprint}
    record(chain, trained := link(key, generation=generation, **more))
    keep_checkpoint(chain, trained)


def test_from_nothing_to_listed(found: Stages) -> None:
    found.now = found.window(0).start
    early = why(found)
    assert (early.state, early.next) == ("not over", "wait until it is over")
    found.now = found.window(0).end
    assert "no run has asked" in why(found).reason
    found.late["b"] = found.window(0).start
    found.source(0, "a")
    found.source(0, "b")
    waits = why(found)
    assert waits.state == "waiting"
    assert "source 'b' is not complete" in waits.reason
    until = found.now.replace(hour=2)
    assert waits.next == f"its run waits until {until:%Y-%m-%dT%H:%M:%SZ}, then it fails"
    found.late.clear()
    assert why(found).reason == "its run is planning it: a listed, waiting for b"
    found.source(0, "b")
    assert why(found).reason == "its run is planning it: a, b listed, waiting for the task sink"


def test_a_plan_waits_for_the_window_before_it(found: Stages) -> None:
    plan(found)
    first = why(found)
    assert (first.state, first.generation) == ("planned", 1)
    assert first.reason == "generation 1: a 1 row, b 1 row"
    plan(found, 1)
    second = why(found, 1)
    assert second.reason.endswith(f"; it waits for window {FIRST}, which is not trained")
    assert second.command == f"forebay run ads --from {FIRST} --to {SECOND}"
    train(found, FIRST)
    assert why(found, 1).command == f"forebay run ads --from {SECOND} --to {SECOND}"


def test_what_a_line_begins_with_leaves_no_planned_rows_out(found: Stages) -> None:
    MEMORY["a"] = MEMORY["b"] = table([noon(number) for number in range(1, 4)])
    for number in range(4):
        plan(found, number)
    assert why(found, 3).command == f"forebay run ads --from {SECOND} --to 2026-03-04"


def test_a_window_that_is_not_judged_says_so(found: Stages) -> None:
    plan(found)
    chain = ModelChain(found.home, "ads")
    fingerprint = model_fingerprint_of(found.pipeline, found.project.sources)
    scores = {"scores": Stored(name="scores", checksum="0", size_bytes=0)}
    record_link(chain, FIRST, {"a": 1, "b": 1}, model_fingerprint=fingerprint, files=scores)
    told = why(found)
    assert told.state == "trained"
    assert told.reason.endswith("; it is not judged, so it is not published either")
    assert told.command == f"forebay run ads --from {FIRST} --to {FIRST}"


def test_a_line_waits_for_no_window_without_rows_to_begin(found: Stages) -> None:
    MEMORY["a"] = MEMORY["b"] = table([noon(2)])
    for number in range(4):
        plan(found, number)
    for number in range(2):
        empty = why(found, number)
        assert (empty.state, empty.generation) == ("planned", 1)
        assert empty.reason.endswith("; a line cannot begin with a window that has no rows")
        assert empty.next == "nothing: line 'main' begins with the first window that has rows"
    third = why(found, 2)
    assert third.reason == "generation 1: a 1 row, b 1 row"
    assert third.command == "forebay run ads --from 2026-03-03 --to 2026-03-03"
    assert "it waits for window 2026-03-03" in why(found, 3).reason


def test_nobody_waits_for_rows_of_1970(found: Stages) -> None:
    MEMORY["a"] = MEMORY["b"] = table([datetime(1970, 1, 21, tzinfo=UTC)])
    plan(found)
    empty = why(found)
    assert empty.next == "correct the times of a, b: no window has such rows"
    assert empty.lags[0].text.startswith("a: the time of its newest row is wrong (1970-01-21 00:")
    target = LineTarget(found.project, found.pipeline, found.home, "main")
    first = found.ledger.plan(FIRST, 1)
    with pytest.raises(DataError, match=r"no rows\. a: the time .* correct the times of a, b"):
        target.require_rows([first])
    MEMORY["b"] = table([noon(9)])
    with pytest.raises(DataError, match="correct the times of a: no window"):
        target.require_rows([first])
    MEMORY["a"] = table([noon(9)])
    with pytest.raises(NotReadyError, match="wait for the first window that has rows"):
        target.require_rows([first])


def test_trained_and_stale(found: Stages) -> None:
    plan(found)
    plan(found, 1)
    train(found, FIRST)
    train(found, SECOND, after=FIRST)
    assert (why(found, 1).state, why(found, 1).next) == ("trained", "")
    assert why(found, 1).reason == "generation 1: a 1 row, b 1 row"
    plan(found, 3)
    assert f"it waits for window {THIRD}" in why(found, 3).reason
    train(found, FIRST, 2)
    stale = why(found, 1)
    assert (stale.state, stale.generation) == ("stale", 1)
    assert stale.command == f"forebay run ads --from {SECOND} --to {SECOND} --reprocess"


def test_every_command_names_a_line_that_is_not_the_default(found: Stages) -> None:
    command = f"forebay run ads --line trial --from {FIRST} --to {FIRST}"
    assert why(found, line="trial").command == command
    plan(found)
    assert why(found, line="trial").command == command


def test_a_job_that_runs_and_fails(found: Stages) -> None:
    plan(found)
    job = ToldJob(found.home)
    job.tell("running")
    job.progress(window="", step=0)
    with job.supervised():
        assert why(found).reason == f"job {job.job_id} is running: it is starting"
    job.progress(step=1200, rows={"a": 1}, windows_total=1)
    with job.supervised():
        running = why(found)
    assert running.state == "running"
    assert "at step 1,200 of window 2026-03-01 (0 of 1 windows done; a 1 rows)" in running.reason
    job.progress(step=1200, resumed="resumed from step 1,000, sealed by host-1:/home")
    with job.supervised():
        assert why(found).reason.endswith(", resumed from step 1,000, sealed by host-1:/home")
    lost = why(found)
    assert (lost.state, lost.reason) == ("failed", f"job {job.job_id} lost its supervisor")
    job.tell("failed", failed("DataError", "label is null", 3))
    ended = why(found)
    assert ended.reason == f"job {job.job_id} failed: DataError: label is null"
    assert ended.command == f"forebay run ads --from {FIRST} --to {FIRST}"
    assert ended.next.startswith("run it again: it continues from the newest checkpoint (logs: ")
    job.tell("failed", failed("LineBusyError", "job j9 trains line 'main'", 4))
    lease = FileLock(found.home.line("ads", "main") / LEASE_NAME)
    lease.path.parent.mkdir(parents=True, exist_ok=True)
    assert lease.acquire(1)
    lease.write("j9")
    busy = why(found)
    lease.release()
    assert (busy.state, busy.command) == ("planned", "")
    assert busy.reason.endswith("; it waits for its line: job j9 trains it")
    assert busy.next == "run it once that job has ended", "`forebay run` tries nothing by itself"
    over = why(found)
    assert (over.state, over.command) == ("planned", ended.command), "that job has ended"
    MEMORY["a"] = table([noon(0)] * 3)
    for name in found.sources:
        found.source(0, name, "r#1")
    found.sink(0, "r#1")
    assert (why(found).state, why(found).generation) == ("planned", 2), "planned anew since"


def test_a_job_of_another_line_or_pipeline_is_not_the_window_s(found: Stages) -> None:
    plan(found)
    ToldJob(found.home).tell("failed")
    assert (why(found).state, why(found, line="trial").state) == ("failed", "planned")


@pytest.mark.parametrize(
    ("number", "trained"),
    [(1, "2026-03-09"), (0, "2026-02-20"), (1, f"2026-02-20_{SECOND}")],
    ids=["trained after it", "before the first", "a warm start"],
)
def test_a_plan_waits_for_nothing_else(found: Stages, number: int, trained: str) -> None:
    plan(found, number)
    train(found, trained)
    assert "it waits" not in why(found, number).reason


def test_restarts_are_counted_and_a_job_that_succeeded_is_no_reason(found: Stages) -> None:
    plan(found)
    job = ToldJob(found.home)
    for restarts, words in (({"trainer": 1}, "1 restart so far"), ({"a": 1, "b": 2}, "3 restarts")):
        job.tell("running", restarts=restarts)
        with job.supervised():
            assert words in why(found).reason
    job.tell("succeeded")
    assert why(found).state == "planned"


def test_a_trained_window_says_what_was_left_out(tmp_path: Path) -> None:
    with stages(tmp_path, ("a", "b"), source={"ready": {"late": "skip"}}) as found:
        MEMORY["a"] = MEMORY["b"] = table([noon(0)])
        found.late["b"] = found.window(0).start
        plan(found)
        train(found, FIRST)
        assert why(found).reason.endswith("; without b (no marker)")
