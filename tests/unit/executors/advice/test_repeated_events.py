"""Rows that share their event id: how many, and when somebody is warned."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.links import judgement
from support.minibatches import labelled

from forebay.executors.advice.repeated_events import repeat_warnings, repeated_events, repeats_of
from forebay.executors.model_line.judgement import Judgement
from forebay.executors.window_files.scores import ScoreWriter, Segments

NAN = float("nan")


@pytest.mark.parametrize(
    ("ids", "labels", "repeated", "twice", "contradicting"),
    [
        ([], [], 0, 0, 0),
        ([5], [1], 0, 0, 0),
        ([3, 1, 2], [0, 1, 0], 0, 0, 0),
        ([7, 1, 7], [0, 1, 0], 2, 2, 0),
        ([7, 1, 7], [0, 1, 1], 2, 2, 1),
        ([7, 7, 7, 1, 1], [1, 1, 0, 0, 0], 5, 2, 1),
        ([7, 7], [1, NAN], 2, 2, 0),
        ([-(2**63), 2**63 - 1, -(2**63)], [0, 0, 0], 2, 2, 0),
    ],
)
def test_counts(
    ids: list[int], labels: list[float], repeated: int, twice: int, contradicting: int
) -> None:
    assert repeats_of(np.array(ids, np.int64), np.array(labels, np.float32)) == {
        "rows": len(ids),
        "repeated": repeated,
        "twice": twice,
        "contradicting": contradicting,
    }


def test_batch_and_stream_rows_of_an_event_are_no_repeat(tmp_path: Path) -> None:
    writer = ScoreWriter(tmp_path, ("mixture",))
    stream = labelled("stream", [1, 2, 2], [0, 0, 1])
    stream = replace(stream, sources=np.ones(3, np.int32))
    writer.append(stream, np.zeros((3, 1), np.float32))
    writer.append(labelled("batch", [1, 2, 3], [0, 1, 0]), None)
    writer.seal()
    found = repeated_events(Segments("w", tmp_path))
    assert found["batch"] == {"rows": 3, "repeated": 0, "twice": 0, "contradicting": 0}
    assert found["stream"] == {"rows": 3, "repeated": 2, "twice": 2, "contradicting": 1}
    assert repeated_events(Segments("w", None)) == {}


def test_batch_rows_that_are_scored_too_count_once(tmp_path: Path) -> None:
    writer, rows = ScoreWriter(tmp_path, ("batch",)), labelled("batch", [1, 2, 3], [0, 1, 0])
    writer.append(rows, np.zeros((3, 1), np.float32))
    writer.append(rows, None)
    writer.seal()
    assert list(repeated_events(Segments("w", tmp_path))) == ["batch"]


def windows(**counts: int) -> list[Judgement]:
    plain = {"rows": 1000, "repeated": 0, "twice": 0, "contradicting": 0}
    return [judgement(repeated_events={"batch": plain | counts})] * 2


def test_a_warning_above_a_hundredth() -> None:
    assert repeat_warnings([judgement(), *windows(repeated=10)]) == []
    (warning,) = repeat_warnings(windows(repeated=11))
    assert warning == (
        "22 of 2,000 batch rows share their event id with another one: all train, one of each is "
        "judged. Name columns in dataset.event_id that tell events apart, or remove the copies"
    )


def test_all_that_was_delivered_twice_and_events_of_both_labels() -> None:
    (warning,) = repeat_warnings(windows(repeated=990, twice=980))
    assert "; almost every one is there twice, as if all had been delivered twice. " in warning
    assert "both labels" not in warning
    (warning,) = repeat_warnings(windows(repeated=2, twice=2, contradicting=1))
    assert "one of each is judged, and 2 events have both labels. Name" in warning
