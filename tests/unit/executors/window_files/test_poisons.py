"""The record of poisons: durable, per window, and bounded."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.letters import task
from support.poisons import poison

from forebay.errors import DataError, InfrastructureError
from forebay.executors.window_files.poisons import POISONS_FOLDER, POISONS_MAX, PoisonRecord


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
