"""A scripted source: its troubles come once and in their place, and no row is lost by them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from support.stages import memory_source

from forebay.cli import run
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.contract.base import Describes, Source
from forebay.datatasks.sources.memory import source as memory
from forebay.datatasks.tasks import DataTask, Position
from forebay.errors import DataError
from forebay.testing.scripted_source import SCRIPTS, Abort, Eof, Pause, ScriptedSource
from forebay.testing.source_data import START, hours
from forebay.testing.source_suite import tasks_of


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Source]:
    monkeypatch.setattr(memory, "MemorySource", ScriptedSource)
    source = open_source(memory_source("a"), tmp_path)
    yield source
    SCRIPTS.pop("a", None)


def rows(*numbers: int) -> pa.RecordBatch:
    at = pa.array([START] * len(numbers), pa.timestamp("us", tz="UTC"))
    return pa.record_batch({"at": at, "n": pa.array(numbers)})


def read_on(
    source: Source, task: DataTask, position: Position | None, read: list[int]
) -> Position | None:
    """Read up to an error; the position from which the next reader has to go on."""
    with suppress(OSError):
        for chunk in source.open(task, position, ["n"], 2):
            read += chunk.batch.column("n").to_pylist()
            position = chunk.end
    return position


def test_reading_again_has_each_row_once_and_rows_that_are_gone_are_missed(
    scripted: Source,
) -> None:
    SCRIPTS["a"] = [rows(1, 2, 3, 4), Pause(0.1), rows(5, 6), Abort(OSError("away")), rows(7, 8)]
    spans = hours(0, 0)
    (task,) = tasks_of(scripted.scan(spans), spans, 0)
    read, began = list[int](), time.monotonic()
    position = read_on(scripted, task, None, read)
    assert time.monotonic() - began >= 0.1
    assert read == [1, 2, 3, 4, 5, 6]
    read_on(scripted, task, position, read)
    assert read == [1, 2, 3, 4, 5, 6, 7, 8]
    SCRIPTS["a"] = [rows(1, 2), rows(3, 4)]
    (task,) = tasks_of(scripted.scan(spans), spans, 0)
    SCRIPTS["a"] = [rows(1, 2), Eof()]
    with pytest.raises(DataError, match="rows 3 to 4 of table 'a' are not all there"):
        list(scripted.open(task, None, ["n"], 2))


def test_a_kind_that_does_not_say_what_is_stored(
    scripted: Source, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not isinstance(scripted, Describes)
    SCRIPTS["a"] = [rows(7)]
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources/a.yaml").write_text(
        "kind: memory\noptions: {table: a}\nevent_time: at\ncolumns: {at: timestamp, n: int}\n"
    )
    assert run(["preview", "a", "--config", str(tmp_path)]) == 0
    assert "7" in capsys.readouterr().out.splitlines()[-1]
    assert run(["check", "--connect", "--config", str(tmp_path)]) == 0
    assert "source 'a': kind 'memory' does not say what is stored" in capsys.readouterr().err
