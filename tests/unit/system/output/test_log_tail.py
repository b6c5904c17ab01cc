"""The last lines of a log, and those added while it is followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.system.output import process_log as log_tail
from forebay.system.output.process_log import LogTail


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "trainer-0.log"


def add(log: Path, text: str | bytes) -> None:
    with log.open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def test_the_last_lines_and_what_is_added(log: Path) -> None:
    tail = LogTail(log)
    assert (tail.last(3), list(tail.added())) == ([], [])
    add(log, "1\n2\n3\n4\nhal")
    tail = LogTail(log)
    assert (tail.last(3), list(tail.added())) == (["2", "3", "4"], [])
    add(log, "f\n5\r\n\xfc".encode("latin-1"))
    assert (list(tail.added()), tail.rest(), tail.rest()) == (["half", "5"], "�", "")
    add(log, "1\n2\n")
    tail = LogTail(log)
    assert tail.last(0) == []
    add(log, "3\n")
    assert list(tail.added()) == ["3"]
    add(log, "a long line\n")
    tail = LogTail(log)
    tail.last(1)
    log.write_text("new\n")
    assert list(tail.added()) == ["new"]


def test_reading_is_bounded(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_tail, "TAIL_BYTES_MAX", 8)
    monkeypatch.setattr(log_tail, "READ_BYTES_MAX", 8)
    monkeypatch.setattr(log_tail, "LINE_BYTES_MAX", 12)
    add(log, "first\nsecond\n3\n")
    tail = LogTail(log)
    assert tail.last(9) == ["3"], "what was cut off at the front is no line"
    add(log, "x" * 30 + "\n")
    looks = [list(tail.added()) for _ in range(4)]
    assert "".join(line for look in looks for line in look) == "x" * 30
    assert all(len(line) <= 16 for look in looks for line in look)
