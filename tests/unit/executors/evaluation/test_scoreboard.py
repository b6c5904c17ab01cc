"""Scores stored with checkpoints, joined with labels that arrive later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.minibatches import labelled

from forebay.executors.evaluation.scoreboard import (
    Scored,
    label_ages,
    label_completeness,
    score_windows,
    window_metrics,
)
from forebay.executors.evaluation.windows import summarise_scores
from forebay.executors.window_files.scores import ScoreWriter, Segments
from forebay.mixture.metrics.figures import LabelAge, LabelCounts

PARADIGMS = ("mixture", "mixed")


def stream(writer: ScoreWriter, ids: list[int], labels: list[float], scores: object) -> None:
    matrix = np.array(scores, dtype=np.float32).reshape(len(ids), -1)
    writer.append(labelled("stream", ids, labels), matrix)


def batch(writer: ScoreWriter, ids: list[int], labels: list[float]) -> None:
    writer.append(labelled("batch", ids, labels), None)


def test_complete_labels_join_from_the_same_and_later_windows(tmp_path: Path) -> None:
    first = ScoreWriter(tmp_path / "1", PARADIGMS)
    stream(first, [10, -20, 30, 40], [0, 1, 0, 0], [[0.1, 0.2], [0.9, 0.8], [0.6, 0.5], [0.4, 0.4]])
    batch(first, [-20, 99], [1, 1])
    first.seal()
    second = ScoreWriter(tmp_path / "2", PARADIGMS)
    batch(second, [30, 10], [1, 0])
    second.seal()
    windows = [Segments("1", tmp_path / "1"), Segments("2", tmp_path / "2")]
    one, two = score_windows(windows, PARADIGMS)
    assert one.paradigms == PARADIGMS
    np.testing.assert_array_equal(one.event_ids, [10, -20, 30, 40])
    np.testing.assert_array_equal(one.complete, np.float32([0, 1, 1, np.nan]))
    metrics = window_metrics(one)["mixture"]
    assert (metrics.rows, metrics.joined_rows, metrics.positives) == (4, 3, 1)
    assert (metrics.positives_true, metrics.auc_true, metrics.auc_fresh) == (2, 1.0, 1.0)
    known = {"fresh_positives": 1, "complete_positives": 2, "share": 0.5}
    assert label_completeness([one]) == LabelCounts(**known)
    assert len(two.event_ids) == 0
    empty = window_metrics(two)["mixed"]
    assert empty.auc_true is None
    assert empty.log_loss is None
    assert (empty.rows, empty.duplicates) == (0, 0)


def test_a_duplicated_event_counts_once_and_is_reported(tmp_path: Path) -> None:
    writer = ScoreWriter(tmp_path, PARADIGMS)
    stream(writer, [5, 7, 5], [0, 1, 1], [[0.1, 0.2], [0.3, 0.4], [0.9, 0.9]])
    batch(writer, [5, 5], [0, 1])
    writer.seal()
    board = score_windows([Segments("w", tmp_path)], PARADIGMS)[0]
    np.testing.assert_array_equal(board.event_ids, [5, 7])
    np.testing.assert_array_equal(board.fresh, np.float32([0, 1]))
    np.testing.assert_array_equal(board.complete, np.float32([0, np.nan]))
    assert (board.duplicates, window_metrics(board)["mixture"].duplicates) == (1, 1)


@pytest.mark.guarantee(
    "a score segment was not sealed by a checkpoint", "it is dropped with the steps after it"
)
def test_what_no_checkpoint_sealed_is_dropped_at_restore(tmp_path: Path) -> None:
    writer = ScoreWriter(tmp_path, PARADIGMS)
    stream(writer, [1], [0], [[0.5, 0.5]])
    sealed = writer.seal()
    stream(writer, [2], [1], [[0.6, 0.6]])
    batch(writer, list(range(20_000)), [0] * 20_000)  # beyond what is kept in memory
    assert len(writer.seal()) == 3
    stream(writer, [3], [1], [[0.7, 0.7]])  # never sealed: the process dies here
    again = ScoreWriter(tmp_path, PARADIGMS)
    again.restore(sealed)
    assert sorted(path.name for path in tmp_path.iterdir()) == sealed
    stream(again, [4], [1], [[0.8, 0.8]])
    again.seal()
    board = score_windows([Segments("w", tmp_path)], PARADIGMS)[0]
    np.testing.assert_array_equal(board.event_ids, [1, 4])
    assert np.isnan(board.complete).all()
    ScoreWriter(tmp_path, PARADIGMS).restore([])
    assert list(tmp_path.iterdir()) == []


def test_what_the_guard_held_says_nothing_of_how_complete_labels_are(tmp_path: Path) -> None:
    writer = ScoreWriter(tmp_path, PARADIGMS)
    silent, waits = labelled("stream", [1, 2, 3, 4], [1, 0, 0, 0]), np.full(4, 60, np.float32)
    held = np.array([[False], [False], [True], [True]])
    writer.append(replace(silent, waits=waits).after_guards(held), np.full((4, 2), 0.5, np.float32))
    batch(writer, [1, 2, 3, 4], [1, 1, 1, 1])
    writer.seal()
    boards = score_windows([Segments("w", tmp_path)], PARADIGMS)
    counts = {"fresh_positives": 1, "complete_positives": 2}
    assert label_completeness(boards) == LabelCounts(**counts, share=0.5)
    assert label_ages(boards) == [LabelAge(until_seconds=900, **counts)]
    assert window_metrics(boards[0])["mixture"].joined_rows == 4


def test_a_counting_learner_has_no_scores_but_label_completeness(tmp_path: Path) -> None:
    writer = ScoreWriter(tmp_path, ())
    writer.append(labelled("stream", [1, 2], [0, 1]), np.zeros((2, 0), dtype=np.float32))
    batch(writer, [1, 2], [1, 1])
    writer.seal()
    boards = score_windows([Segments("w", tmp_path)], ())
    assert window_metrics(boards[0]) == {}
    summary = summarise_scores(boards)
    assert (summary.paradigms, summary.differences, summary.label) == ({}, [], "fresh")
    assert summary.label_completeness.share == 0.5


def test_the_summary_pools_windows_and_says_in_words_what_differs(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    windows = []
    for day in range(3):
        writer = ScoreWriter(tmp_path / str(day), ("mixture", "mixed", "stream"))
        ids = list(range(day * 1000, day * 1000 + 1000))
        labels = (random.random(1000) < 0.3).astype(np.float32)
        good = labels + random.normal(size=1000)
        scores = np.stack([good, good + 0.01 * random.normal(size=1000), good * 0], axis=1)
        stream(writer, ids, list(labels * (random.random(1000) < 0.31)), scores)
        batch(writer, ids, list(labels))
        writer.seal()
        windows.append(Segments(str(day), tmp_path / str(day)))
    pooled = summarise_scores(score_windows(windows, ("mixture", "mixed", "stream")))
    assert pooled.label == "complete"
    same, better, _ = pooled.differences
    assert (same.a, same.b, same.differ) == ("mixture", "mixed", False)
    assert same.words.startswith("mixture and mixed do not differ (difference ")
    assert better.differ
    words = "mixture is better than stream on these rows only (difference 0.2"
    assert better.words.startswith(words)
    assert pooled.paradigms["stream"].auc_true.value == 0.5
    (warning,) = pooled.warnings
    assert warning.startswith("mixture is a bad choice here: only 3")


def test_differences_are_on_complete_labels_where_any_are_known(tmp_path: Path) -> None:
    for name in ("fresh", "complete"):
        writer = ScoreWriter(tmp_path / name, PARADIGMS)
        stream(writer, [1, 2, 3], [0, 1, 1], [[0.1, 0.9], [0.5, 0.5], [0.9, 0.1]])
        if name == "complete":
            batch(writer, [1, 2, 3], [1, 0, 0])
        writer.seal()
    fresh, complete = (
        summarise_scores(score_windows([Segments("w", tmp_path / name)], PARADIGMS))
        for name in ("fresh", "complete")
    )
    assert (fresh.label, complete.label) == ("fresh", "complete")
    assert [found.differences[0].value for found in (fresh, complete)] == [1.0, -1.0]
    assert fresh.paradigms["mixture"].auc_true is None
    assert complete.paradigms["mixture"].auc_true.value == 0.0
    assert complete.paradigms["mixture"].auc_fresh.value == 1.0


def board(paradigms: tuple[str, ...], fresh: list[float], complete: list[float]) -> Scored:
    """Rows that each paradigm scores as their place says."""
    places = np.arange(len(fresh), dtype=np.float32)
    return Scored(
        window="w",
        paradigms=paradigms,
        event_ids=np.arange(len(fresh)),
        fresh=np.array(fresh, np.float32),
        complete=np.array(complete, np.float32),
        scores=np.repeat(places[:, np.newaxis], len(paradigms), axis=1),
    )


def test_half_a_label_is_no_positive() -> None:
    found = board(("mixed",), [0.5, 0.6, 0.0], [0.5, 1.0, np.nan])
    metrics = window_metrics(found)["mixed"]
    assert (metrics.positives, metrics.positives_true) == (1, 1)
    known = {"fresh_positives": 1, "complete_positives": 1, "share": 1.0}
    assert label_completeness([found]) == LabelCounts(**known)


def test_a_positive_that_was_taken_back_was_never_known() -> None:
    found = board(("mixture",), [1.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.0])
    known = {"fresh_positives": 1, "complete_positives": 2, "share": 0.5}
    assert label_completeness([found]) == LabelCounts(**known)
    assert summarise_scores([found]).warnings == []


def test_windows_scored_by_other_paradigms_are_not_pooled() -> None:
    unknown = [np.nan] * 3
    assert summarise_scores([board((), [0, 1, 0], [0, 1, 0])]).label == "fresh"
    counted = replace(board(("x",), [0, 1, 0], unknown), paradigms=())
    right = board(("mixed",), [0, 0, 1], unknown)
    found = summarise_scores([counted, right, board(("other",), [1, 0, 0], unknown)])
    assert list(found.paradigms) == ["mixed"]
    assert found.paradigms["mixed"].auc_fresh.value == 1.0


def test_a_window_without_rows_does_not_say_what_is_pooled() -> None:
    empty = board(("mixture",), [], [])
    scored = board(("mixture", "mixture/memory", "mixture@1"), [0, 0, 1], [0, 0, 1])
    found = summarise_scores([empty, scored])
    assert list(found.paradigms) == ["mixture", "mixture/memory"]
    assert (found.paradigms["mixture"].auc_true.seeds, found.differences) == (2, [])


def test_seeds_are_one_variant_and_towers_no_rivals() -> None:
    columns = ("mixture", "stream", "mixture/memory", "mixture@1", "stream@1")
    found = board(columns, [0, 1, 0], [0, 1, 1])
    found.scores[:, 3] = [0, 0, 1]
    metrics = window_metrics(found)
    assert list(metrics) == ["mixture", "stream", "mixture/memory"]
    assert metrics["mixture"].auc_true == pytest.approx((1.0 + 0.75) / 2)
    assert metrics["stream"].words_true == ""
    (difference,) = summarise_scores([found]).differences
    assert (difference.a, difference.b) == ("mixture", "stream")
    late = window_metrics(replace(found, all_here=False))
    assert late["stream"].words_true == "1.000 so far, 3 of 3 rows judged"
    assert summarise_scores([replace(found, all_here=False)]).label == "fresh"


def test_fresh_labels_decide_nothing_while_complete_ones_are_to_come() -> None:
    """Of rows that are published early, who says that hardly any is positive looks best."""
    unknown = board(("mixture", "stream"), [0, 1, 0], [np.nan] * 3)
    assert len(summarise_scores([unknown]).differences) == 1
    waiting = summarise_scores([replace(unknown, all_here=False)])
    assert (waiting.differences, waiting.label) == ([], "fresh")
    assert waiting.paradigms["stream"].auc_fresh.value == 0.5
    known = board(("mixture", "stream"), [0, 1, 0], [0, 1, 0])
    assert len(summarise_scores([replace(known, all_here=False)]).differences) == 1
