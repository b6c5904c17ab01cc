"""What a trainer reports about itself while it runs, and the counters that outlive it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from support.there import there

from forebay.executors.job import measures
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.measures import Progress
from forebay.executors.job.request import WindowRequest
from forebay.executors.link.local import LocalLink
from forebay.executors.trainer import progress_reporter as module
from forebay.executors.trainer.progress_reporter import ProgressReporter
from forebay.executors.trainer.window.open_window import DurableCounters
from forebay.executors.window_files.checkpoints import Seal
from forebay.system.liveness import Activity, ActivityAges

START = datetime(2026, 3, 1, tzinfo=UTC)
SEALED = START + timedelta(days=2)
DAY = WindowRequest(key="2026-03-01", generation=1, start=START, end=START + timedelta(days=1))


class Clock:
    now = 1_000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    now = {name: lambda: clock.now for name in ("monotonic", "perf_counter", "time")}
    for each in (module, measures):
        monkeypatch.setattr(each, "time", SimpleNamespace(**now))
    return clock


def seal(step: int) -> Seal:
    of = {"window": DAY.key, "generation": 1, "step": step, "window_step": step, "final": False}
    kept = {"progress": {}, "base_seen": [], "seen": [], "scores": [], "sealed_at": SEALED}
    return Seal.model_validate(of | kept | {"runtime": "here", "model_fingerprint": "clicks"})


def told(folder: Path) -> Progress:
    return there(JobFolder(folder).progress())


def test_the_lag_is_the_time_of_data_that_is_left(tmp_path: Path, clock: Clock) -> None:
    reporter = ProgressReporter(LocalLink(tmp_path), ["a", "b"], 3)
    reporter.begin(DAY, 1, 40)
    first = told(tmp_path)
    assert (first.window, first.windows_done, first.windows_total) == (DAY.key, 1, 3)
    assert (first.step, first.sealed_step, first.lag_seconds) == (40, 40, 86_400)
    assert (first.rows, first.rows_per_second) == ({"a": 0, "b": 0}, 0)
    assert reporter.stepped(np.array([3, 1]), 0, 41) == 86_400
    assert reporter.stepped(np.array([3, 1]), 23 * 3_600, 42) == 3_600
    assert reporter.stepped(np.array([0, 1]), 25 * 3_600, 43) == 0
    clock.now += 1
    reporter.sealed(seal(42))
    last = told(tmp_path)
    assert (last.step, last.sealed_step, last.rows) == (43, 42, {"a": 6, "b": 3})
    assert (first.sealed_at, last.sealed_at) == (0, SEALED.timestamp())
    assert (first.reported_at, last.reported_at) == (1_000, 1_001)
    reporter.finished(DAY.key)
    assert (told(tmp_path).windows_done, told(tmp_path).lag_seconds) == (2, 0)


def test_what_a_window_goes_on_from_is_named_until_its_end(tmp_path: Path, clock: Clock) -> None:
    reporter = ProgressReporter(LocalLink(tmp_path), ["a"], 2)
    reporter.begin(DAY, 0, 1042, seal(42), "host-1:/home")
    begun = told(tmp_path)
    assert begun.resumed == "resumed from step 42, sealed by host-1:/home"
    assert (begun.sealed_step, begun.sealed_at) == (1042, SEALED.timestamp())
    reporter.begin(DAY, 1, 2000, seal(42))
    assert told(tmp_path).resumed == ""
    reporter.begin(DAY, 1, 90)
    assert (told(tmp_path).sealed_step, told(tmp_path).sealed_at) == (90, 0)


def test_speed_is_of_the_last_rows_and_written_not_too_often(tmp_path: Path, clock: Clock) -> None:
    reporter = ProgressReporter(LocalLink(tmp_path), ["a"], 1)
    reporter.begin(DAY, 0, 0)
    clock.now += 0.1
    reporter.stepped(np.array([50]), 0, 1)
    assert told(tmp_path).step == 0, "too soon"
    clock.now += 0.1 + 1e-9
    reporter.stepped(np.array([50]), 0, 2)
    found = told(tmp_path)
    assert (found.step, found.rows_per_second) == (2, 500)
    clock.now += 2
    reporter.stepped(np.array([20]), 0, 3)
    assert told(tmp_path).rows_per_second == 10
    clock.now += 0.1
    reporter.sealed(seal(3))
    assert told(tmp_path).rows_per_second == 10, "as it was measured last"


def test_phases_add_up_over_trainers_of_one_job(tmp_path: Path, clock: Clock) -> None:
    for _ in range(2):
        reporter = ProgressReporter(LocalLink(tmp_path), ["a"], 1)
        for seconds in (1.0, 0.2504):
            with reporter.phase("learn"):
                clock.now += seconds
        reporter.begin(DAY, 0, 0)
    assert told(tmp_path).phases_seconds == {"learn": 2.5}


@pytest.mark.parametrize("name", ["load", "seal", "train", "export"])
def test_a_large_model_may_take_long_while_it_computes(tmp_path: Path, name: str) -> None:
    reporter, ages = ProgressReporter(LocalLink(tmp_path), ["a"], 1), ActivityAges()
    with Activity("trainer") as trainer, reporter.phase(name):
        for _ in range(3):
            assert ages.look([trainer], 100.0, 50.0).seconds == 0.0
        assert ages.look([trainer], 100.0, 1.0) == (100.0, f"trainer, {name}")


def test_counters_go_on_after_a_kill_and_start_anew_in_another_form(tmp_path: Path) -> None:
    path = tmp_path / "counts" / "rows"
    first = DurableCounters(path, ("a", "b"))
    first.add("a", 2)
    first.add("b", 2**40)
    first.add("a", 3)
    again = DurableCounters(path, ("a", "b"))
    assert (again.value("a"), again.value("b"), path.stat().st_size) == (5, 2**40, 16)
    other = DurableCounters(path, ("a", "b", "c"))
    assert [other.value(name) for name in "abc"] == [0, 0, 0]


def test_a_trainer_that_is_started_again_has_windows_that_are_done_already(tmp_path: Path) -> None:
    """The one before it was killed after its window was linked: nothing was begun here yet."""
    ProgressReporter(LocalLink(tmp_path), ["a"], 3).finished("2026-03-01")
    told = there(JobFolder(tmp_path).progress())
    assert (told.window, told.windows_done, told.windows_total) == ("2026-03-01", 1, 3)
    assert (told.step, told.rows, told.rows_per_second, told.lag_seconds) == (0, {"a": 0}, 0.0, 0.0)
