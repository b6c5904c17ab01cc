"""What is measured of a job's processes, and what that says."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.toy_roles.jobs import eventually

from forebay.errors import DataError, InfrastructureError
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.measures import Measure, ProcessMeasure, Progress, shares
from forebay.executors.link.local import LocalLink
from forebay.executors.planes.base import Usage
from forebay.executors.supervisor import sampler as module
from forebay.executors.supervisor.sampler import Sampler


def report(folder: Path, rows: int, wait: float, train: float) -> None:
    phases = {"wait": wait, "train": train}
    progress = Progress(rows={"clicks": rows}, phases_seconds=phases)
    JobFolder(folder).report(progress)


def test_rates_are_of_the_interval_and_peaks_of_all_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    found = Sampler(JobFolder(tmp_path), {"trainer-0": 7})
    report(tmp_path, 100, 1.0, 1.0)
    executor = LocalLink(tmp_path, "data")
    (tmp_path / "pulse").mkdir()
    executor.report_phases({"decode": 1.0})
    now[0] += 5
    assert found.is_due()
    found.sample(lambda: {"data-0": Usage(cpu_seconds=3.0, memory_bytes=70, memory_peak_bytes=90)})
    assert not found.is_due()
    report(tmp_path, 1_100, 3.0, 3.5)
    executor.report_phases({"decode": 4.0, "blocked": 5.0})
    now[0] += 10
    # It has started again meanwhile: its counters too.
    found.sample(lambda: {"data-0": Usage(cpu_seconds=2.0, throttled_seconds=1.0, memory_bytes=50)})
    measure = JobFolder(tmp_path).measures.newest()
    assert measure is not None
    assert (measure.interval_seconds, measure.rows_per_second) == (10.0, {"clicks": 100.0})
    assert measure.phases == {"wait": 0.2, "train": 0.25}
    assert measure.processes == {
        "data-0": ProcessMeasure(
            cpu_cores=0.2,
            throttled_share=0.1,
            memory_bytes=50,
            memory_peak_bytes=90,
            phases={"decode": 0.3, "blocked": 0.5},
        )
    }
    assert found.peaks == {"trainer-0": 7, "data-0": 90}


def test_a_long_job_keeps_all_of_its_time_in_a_small_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LINES_MAX", 8)
    found = Sampler(JobFolder(tmp_path), interval_seconds=0.01)
    for _ in range(30):
        eventually(found.is_due)
        found.sample(dict)
    lines = (tmp_path / "measures.jsonl").read_text().splitlines()
    assert len(lines) < 8
    at = [Measure.model_validate_json(line).at for line in lines]
    assert at == sorted(at)
    assert JobFolder(tmp_path).measures.newest() == Measure.model_validate_json(lines[-1])


def test_what_cannot_be_stored_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "measures.jsonl").mkdir()
    Sampler(JobFolder(tmp_path)).sample(lambda: {"data-0": Usage(cpu_seconds=1.0)})
    assert "no measures of the last" in caplog.text


def test_after_a_measure_that_failed_the_next_is_of_all_the_time_since(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    folder = JobFolder(tmp_path)
    files = folder.process("data", 0)
    files.pulse.parent.mkdir()
    sampler = Sampler(folder)
    for at, is_damaged in ((5.0, False), (10.0, True), (15.0, False)):
        clock[0] = at
        files.report_phases({"decode": at / 2})
        if is_damaged:
            files.pulse.with_name("data-0.json").write_text("{")
        sampler.sample(lambda: {"data-0": Usage(cpu_seconds=clock[0])})
    newest = folder.measures.newest()
    assert newest is not None
    assert newest.interval_seconds == 10.0
    assert newest.processes["data-0"].cpu_cores == 1.0
    assert newest.processes["data-0"].phases == {"decode": 0.5}


@pytest.mark.parametrize(
    ("phases", "cores", "word"),
    [
        ({}, 0.1, "starting"),
        ({"seal": 0.4, "export": 0.3, "wait": 0.2}, 0.1, "storing"),
        ({"train": 0.9, "wait": 0.05}, 1.0, "training"),
        ({"train": 0.4, "wait": 0.6}, 1.0, "decoding"),
        ({"train": 0.4, "wait": 0.6}, 0.1, "storage"),
        ({"train": 0.4, "wait": 0.6}, None, "reading"),  # the plane cannot know
    ],
)
def test_one_word_for_what_holds_a_job_back(
    phases: dict[str, float], cores: float | None, word: str
) -> None:
    processes = {"data-0": ProcessMeasure(cpu_cores=cores), "trainer-0": ProcessMeasure()}
    measure = Measure(
        at=datetime.now(UTC),
        interval_seconds=5,
        processes=processes,
        phases=phases,
        rows_per_second={},
    )
    assert measure.bottleneck.word == word


def test_a_counter_that_began_again_counts_from_0() -> None:
    assert shares({"wait": 9.0, "train": 1.0}, {"wait": 1.0, "train": 3.0}, 2.0) == {
        "wait": 0.5,
        "train": 1.0,
    }


@pytest.mark.parametrize("text", ["garbage\n", "{}\n", "\0\0\n"])
def test_a_damaged_file_of_measures_is_said_to_be_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "measures.jsonl").write_text(text)
    with pytest.raises(DataError, match=r"measures.jsonl is damaged: remove it"):
        JobFolder(tmp_path).measures.newest()


def test_a_plane_that_cannot_say_what_is_used_ends_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def away() -> dict[str, Usage]:
        raise InfrastructureError("the cluster does not answer")

    Sampler(JobFolder(tmp_path)).sample(away)
    assert "the cluster does not answer" in caplog.text
    assert JobFolder(tmp_path).measures.newest() is None
