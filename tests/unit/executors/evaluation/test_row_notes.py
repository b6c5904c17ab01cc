"""Notes about the rows of a range: outside their time, learnt by no paradigm, missing."""

from __future__ import annotations

from typing import Any

from support.links import judgement

from forebay.executors.evaluation.words import row_notes


def source(**more: Any) -> dict[str, Any]:
    return {"offsets": {"0": [0, 9]}, **more}


def test_rows_that_a_declaration_took_away_and_sources_left_out_are_named() -> None:
    gap = {"start": "2026-03-01T00:00:00Z", "end": "2026-03-01T06:00:00Z", "reason": "before start"}
    away, skipped = source(gap=gap), source(reason="skipped: no marker")
    first, second = row_notes([judgement(window="1", sources={"a": away, "b": skipped})])
    assert first.startswith(
        "window 1, source a: rows of 2026-03-01T00:00:00Z to 2026-03-01T06:00:00Z are not trained"
    )
    assert second == "window 1, source b: trained without it (skipped: no marker)"


def test_each_source_with_late_rows_has_its_notes() -> None:
    some = source(late_rows=1500, odd_timestamps=2, first_odd="topic t, partition 0, offset 4")
    windows = [
        judgement(window="2026-03-01", sources={"a": source()}),
        judgement(window="2026-03-02", sources={"a": source(), "b": some}),
    ]
    place = "window 2026-03-02, source b: "
    late = "1,500 rows from before the window arrived only after the previous window had closed"
    odd = "2 rows with a time after the window; the first is topic t, partition 0, offset 4"
    assert row_notes(windows) == [place + late, place + odd]


def test_rows_of_files_with_wrong_metadata_are_named() -> None:
    some = source(odd_timestamps=1, first_odd="file x.parquet, row 7", offsets={})
    (note,) = row_notes([judgement(window="2026-03-02", sources={"b": some})])
    assert "b: 1 row with a time outside of the window, contrary to the metadata" in note
    assert note.endswith("the first is file x.parquet, row 7")


def test_rows_whose_label_came_late_are_added_up() -> None:
    late = source(label_not_known_rows=1200, served_rows=5000)
    windows = [judgement(window=key, sources={"a": late, "b": source()}) for key in ("1", "2")]
    (note,) = row_notes(windows)
    assert note.startswith("source a: 2,400 of 10,000 rows of such windows were not trained on")
    assert "(known_at)" in note


def test_rows_that_nobody_learns_are_added_up() -> None:
    idle = source(trained_rows=1000, learnt_rows={"stream": 0, "batch_then_stream": 0})
    used = source(trained_rows=7, learnt_rows={"stream": 0, "mixture": 7})
    counted = source(trained_rows=9)
    assert row_notes(
        [judgement(window=key, sources={"a": idle, "b": used, "c": counted}) for key in ("1", "2")]
    ) == ["source a: 2,000 rows that no paradigm trains on"]


def test_rows_that_a_delay_head_learns_are_not_idle() -> None:
    rows = source(trained_rows=10, learnt_rows={"stream+head": 0, "stream+head/masked": 0})
    assert row_notes([judgement(window="1", sources={"a": rows})]) == []


def test_rows_that_the_guard_held_are_told_of_each_window() -> None:
    learnt = {"stream": 5, "stream/paused": 1200, "mixed": 5, "mixed/paused": 1200}
    held = source(trained_rows=1205, learnt_rows=learnt | {"batch": 0, "batch/paused": 0})
    (note,) = row_notes([judgement(window="2026-03-01", sources={"a": held, "b": source()})])
    assert note.startswith(
        "window 2026-03-01, source a: stream, mixed did not train on 1,200 rows: far fewer"
    )


def test_silent_windows_are_counted() -> None:
    silent, early = source(reason="no rows"), source(reason="before start")
    windows = [judgement(window=key, sources={"a": silent, "b": early}) for key in ("1", "2")]
    assert row_notes(windows) == ["source a: no rows in 2 windows, the first is 1"]
    assert row_notes(windows[1:]) == ["source a: no rows in 1 window, the first is 2"]


def test_rows_without_a_model_of_their_time_are_added_up() -> None:
    some, few = {"gone": 1200, "before": 7}, {"gone": 34}
    gone = [{"unjudged": some, "complete": True}, None, {"unjudged": few, "complete": False}]
    windows = [judgement(event=one) for one in gone]
    (note,) = row_notes(windows)
    assert note.startswith("no event score for 1,234 rows: the checkpoint of the model that would")
    assert row_notes([judgement()]) == []
