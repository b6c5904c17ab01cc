"""Notes about rows whose time is not that of their window."""

from __future__ import annotations

from forebay.executors.evaluation.late_rows import outside_notes


def test_each_source_with_late_rows_has_its_notes() -> None:
    none = {"late_rows": 0, "odd_timestamps": 0, "first_odd": ""}
    some = {"late_rows": 1500, "odd_timestamps": 2, "first_odd": "topic t, partition 0, offset 4"}
    windows = [
        {"window": "2026-03-01", "sources": {"a": none}},
        {"window": "2026-03-02", "sources": {"a": none, "b": some}},
    ]
    place = "window 2026-03-02, source b: "
    late = "1,500 rows are older than the window; they lie behind its border"
    odd = "2 rows have a time behind the window; the first is topic t, partition 0, offset 4"
    assert outside_notes(windows) == [place + late, place + odd]
