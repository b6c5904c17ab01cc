"""What follows from marks once their process is gone."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from support.letters import task
from support.poisons import poison
from support.there import there

from forebay.datatasks.tasks import DataTask, Position
from forebay.errors import DataError, InfrastructureError
from forebay.executors.job.folder import JobFolder
from forebay.executors.window_files.poisons import POISONS_FOLDER, POISONS_MAX, PoisonRecord
from forebay.system.processes.ends import CRASHES

AT = Position(7, 3)


def died(job: Path, number: int, reads: DataTask, waits: DataTask | None = None) -> bool:
    """A process that decodes one task, and waits for room with another, is gone."""
    if waits is not None:
        with JobFolder(job).suspicions.mark(0, waits).decoding(AT):
            pass
    decoding = JobFolder(job).suspicions.mark(0, reads).decoding(AT)
    decoding.__enter__()
    return JobFolder(job).suspicions.executor_ended(0, number, f"end-{number}")


@pytest.mark.parametrize("number", sorted(CRASHES))
def test_a_crash_makes_what_was_decoded_suspect(tmp_path: Path, number: int) -> None:
    assert died(tmp_path, number, task(0), waits=task(1))
    found = there(JobFolder(tmp_path).suspicions.of(task(0)))
    assert found.is_due
    assert found.place.position == AT
    assert JobFolder(tmp_path).suspicions.of(task(1)) is None
    assert JobFolder(tmp_path).suspicions.of(task(0, "history")) is None


def test_a_crash_while_nothing_is_decoded_makes_all_suspect(tmp_path: Path) -> None:
    mark = JobFolder(tmp_path).suspicions.mark(0, task(0))
    with mark.decoding(AT):
        pass
    suspicions = JobFolder(tmp_path).suspicions
    assert suspicions.executor_ended(0, signal.SIGSEGV, "end")
    assert suspicions.of(task(0)) is not None
    assert not suspicions.executor_ended(0, signal.SIGSEGV, "later"), "marks count once"


def test_a_kill_counts_when_it_comes_again_at_the_same_place(tmp_path: Path) -> None:
    suspicions = JobFolder(tmp_path).suspicions
    assert not died(tmp_path, signal.SIGKILL, task(0), waits=task(1))
    assert not there(suspicions.of(task(0))).is_due
    assert died(tmp_path, signal.SIGKILL, task(0))
    assert there(suspicions.of(task(0))).is_due
    assert suspicions.of(task(1)) is None, "it only waited"


def test_a_place_that_was_passed_counts_no_more(tmp_path: Path) -> None:
    died(tmp_path, signal.SIGKILL, task(0))
    JobFolder(tmp_path).suspicions.drop(task(0))
    assert not died(tmp_path, signal.SIGKILL, task(0))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_other_signals_say_nothing(tmp_path: Path, number: int) -> None:
    assert not died(tmp_path, number, task(0))
    assert JobFolder(tmp_path).suspicions.of(task(0)) is None


def test_a_mark_goes_with_its_reader_and_is_its_own(tmp_path: Path) -> None:
    """A lost lease's reader may still be at the task of the one after it."""
    older, newer = (JobFolder(tmp_path).suspicions.mark(0, task(0)) for _ in range(2))
    decoding = older.decoding(AT), newer.decoding(Position(9, 0))
    for each in decoding:
        each.__enter__()
    older.remove()
    older.remove()
    suspicions = JobFolder(tmp_path).suspicions
    assert suspicions.executor_ended(0, signal.SIGBUS, "end")
    assert there(suspicions.of(task(0))).place.position == Position(9, 0)


def test_half_a_mark_says_nothing(tmp_path: Path) -> None:
    with JobFolder(tmp_path).suspicions.mark(0, task(0)).decoding(AT):
        (mark,) = tmp_path.glob("reading/*/*")
        mark.write_bytes(mark.read_bytes()[:20])
        assert not JobFolder(tmp_path).suspicions.executor_ended(0, signal.SIGSEGV, "end")


def test_a_shorter_mark_replaces_a_longer_one(tmp_path: Path) -> None:
    mark = JobFolder(tmp_path).suspicions.mark(0, task(0))
    with mark.decoding(Position(123_456_789, 1_000)):
        pass
    decoding = mark.decoding(Position(1, 2))
    decoding.__enter__()
    suspicions = JobFolder(tmp_path).suspicions
    assert suspicions.executor_ended(0, signal.SIGILL, "end")
    assert there(suspicions.of(task(0))).place.position == Position(1, 2)


def test_what_was_added_is_there_for_any_process(tmp_path: Path) -> None:
    record = PoisonRecord(tmp_path)
    record.add(task(0), poison(task(0), 4))
    for _ in range(2):  # a lost lease's reader finds what the one after it does
        record.add(task(0), poison(task(0), 2))
    assert [each.unit.first.part for each in PoisonRecord(tmp_path).of(task(0))] == [4, 2]
    assert PoisonRecord(tmp_path).of(task(1)) == []


def test_half_a_line_of_a_process_that_died_is_no_poison(tmp_path: Path) -> None:
    record = PoisonRecord(tmp_path)
    record.add(task(0), poison(task(0), 1))
    (file,) = (tmp_path / POISONS_FOLDER).iterdir()
    file.write_bytes(file.read_bytes() + b'{"source": "cli')
    assert len(record.of(task(0))) == 1
    record.add(task(0), poison(task(0), 2))
    assert len(record.of(task(0))) == 2


def test_a_source_with_too_many_is_red(tmp_path: Path) -> None:
    record = PoisonRecord(tmp_path)
    for number in range(POISONS_MAX):
        record.add(task(number % 3), poison(task(number % 3), number))
    record.add(task(0, "history"), poison(task(0, "history"), 0))
    with pytest.raises(DataError, match=r"clicks.*offset 5.*ended by SIGABRT"):
        record.add(task(0), poison(task(0), 5))


def test_a_window_that_is_over_keeps_nothing(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="is gone"):
        PoisonRecord(tmp_path / "gone").add(task(0), poison(task(0), 1))
    assert not (tmp_path / "gone").exists()
