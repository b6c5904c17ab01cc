"""A client that goes away in the middle of its calls leaves nothing that looks like a hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support import independent
from support.data_path import Counter, DataPath
from support.projects import DAY, FIRST_DAY, ads_pipeline, history_source, write_history
from support.toy_roles.jobs import eventually

from forebay.errors import ForebayError
from forebay.executors.data_executor.executor import DataExecutor
from forebay.executors.driver.driver import Driver
from forebay.system.liveness import Activity, ActivityAges, activities

ROWS = 6_000


@contextmanager
def served_here(path: DataPath) -> Iterator[None]:
    """Driver and data executor in this process, so that their activities are seen."""
    driver = Driver(path.job_dir, path.attempt("driver-0"))
    driver.start()
    executor = DataExecutor(path.job_dir, 0, 1)

    def run() -> None:
        with suppress(ForebayError), Activity("data"):
            executor.run()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        executor.close()
        driver.stop()
        thread.join(30)


def stillest(before: set[Activity]) -> float:
    """For how many seconds of one and a half an activity has not got on."""
    ages, still = ActivityAges(), 0.0
    for _ in range(30):
        time.sleep(0.05)
        still = ages.look(set(activities()) - before, 0.05, 0.0).seconds
    return still


def test_a_trainer_that_goes_away_in_mid_stream(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forebay.executors.data_executor.task_runner.WAIT_SECONDS", 0.1)
    write_history(tmp_path / "data/history", FIRST_DAY - DAY, ROWS)
    pipeline = ads_pipeline(buffers={"credits": 2, "chunk_rows": 512, "rows_max": 1024})
    del pipeline["dataset"]["streams"]["clicks"]
    pipeline["train"]["minibatch_rows"] = 128
    path = DataPath.of(tmp_path, pipeline, {"history": history_source()})
    path.plan("2026-03-01", "2026-03-01")
    before, counter = set(activities()), Counter(path)
    with served_here(path):
        gone = path.reader()
        gone.begin("2026-03-01", 1, {}, 0)
        for _ in range(3):
            frame = gone.next(30)
            assert frame is not None
            gone.used(frame)
        gone.close()  # its stream has credit, and a beat is being answered
        assert len(set(activities()) - before) >= 3, "somebody reads, and waits for room"
        assert stillest(before) < 0.75
        reader = path.reader()
        reader.begin("2026-03-01", 1, {}, 0)
        counter.consume(reader)
        reader.close()
        assert stillest(before) < 0.75
    assert counter.sums() == [independent.parquet_sums(path.root / "data/history")]
    eventually(lambda: set(activities()) <= before)
