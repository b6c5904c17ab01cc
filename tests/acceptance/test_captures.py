"""Terminal captures in docs/ are what the commands print, except for durations."""

from __future__ import annotations

from pathlib import Path

from captures import blocks, captures, masked
from support.jobs_here import jobs_in_this_process
from support.terminals import COLUMNS, width


def test_pages_show_what_is_printed(tmp_path: Path) -> None:
    with jobs_in_this_process():
        shown, printed = blocks(), captures(tmp_path)
    assert shown.keys() == printed.keys()
    for name, text in printed.items():
        assert masked(shown[name]) == masked(text), "run `make captures`"


def test_they_fit_a_terminal() -> None:
    lines = [line for text in blocks().values() for line in text.splitlines()]
    assert len(lines) > 10
    assert [line for line in lines if width(line) > COLUMNS] == []


def test_only_durations_are_masked() -> None:
    assert masked("time  about 1 min 5 s:\n 9.5 s to start 2 jobs") == masked(
        "time about 40 s: 12 s to start\n2 jobs"
    )
    assert masked("2,000 rows") != masked("2,001 rows")
