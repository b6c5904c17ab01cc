"""Score segments: order over seals, what a restore drops, and what cannot be read."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.minibatches import labelled
from support.there import there

from forebay.config.specs.datasets import Feed
from forebay.errors import DataError
from forebay.executors.window_files.scores import ScoreWriter, Segments, paradigms_of, score_matrix
from forebay.mixture.minibatch import Minibatch

PARADIGMS = ("mixture", "mixed")
INT_MIN = -(2**63)


def minibatch(feed: Feed, ids: list[int]) -> Minibatch:
    return labelled(feed, ids, [number % 2 for number in ids])


def score(writer: ScoreWriter, *ids: int) -> None:
    scores = np.array([[number, -number] for number in ids], np.float32)
    writer.append(minibatch("stream", list(ids)), scores)


def ids_of(folder: Path | None) -> tuple[list[int], list[int]]:
    segments = Segments("w", folder)
    tables = (segments.scores(), segments.labels())
    scored, labelled = ([] if t is None else t.column("event_id").to_pylist() for t in tables)
    return scored, labelled


def test_segments_keep_the_order_over_many_seals(tmp_path: Path) -> None:
    writer = ScoreWriter(tmp_path, PARADIGMS)
    assert (writer.seal(), ids_of(None)) == ([], ([], []))
    for number in range(12):
        score(writer, number, 100 + number)
        writer.append(minibatch("batch", [number]), None)
        score(writer, 200 + number)
        names = writer.seal()
    assert len(names) == len(set(names)) == 24
    scored, labelled = ids_of(tmp_path)
    assert scored == [n for number in range(12) for n in (number, 100 + number, 200 + number)]
    assert labelled == list(range(12))
    table = there(Segments("w", tmp_path).scores())
    assert paradigms_of(table) == PARADIGMS
    np.testing.assert_array_equal(score_matrix(table)[:2], [[0, 0], [100, -100]])


def test_segments_say_when_rows_happened_how_long_they_waited_and_whose(tmp_path: Path) -> None:
    writer = ScoreWriter(tmp_path, PARADIGMS)
    times, waits = np.array([5, INT_MIN]), np.array([1.5, np.nan], np.float32)
    sources = np.array([3, 1], np.int32)
    timed = replace(minibatch("stream", [1, 2]), event_times=times, waits=waits, sources=sources)
    writer.append(timed, np.zeros((2, 2), np.float32))
    writer.append(replace(timed, feed="batch"), None)
    score(writer, 3)  # of a pipeline whose sources name no event_time
    writer.seal()
    segments = Segments("w", tmp_path)
    scored, labelled = there(segments.scores()), there(segments.labels())
    published = there(segments.published())
    names = ["event_id", "fresh", "event_time", "wait", "source", "held"]
    assert scored.column_names[:6] == names
    assert labelled.column_names == ["event_id", "complete", "event_time", "source"]
    assert published.column_names == names
    assert scored.column("event_time").to_pylist() == [5, INT_MIN, INT_MIN]
    np.testing.assert_array_equal(scored.column("wait"), [1.5, np.nan, np.nan])
    assert scored.column("source").to_pylist() == [3, 1, 0]
    assert labelled.column("event_time").to_pylist() == [5, INT_MIN]
    assert labelled.column("source").to_pylist() == [3, 1]


def test_damage_is_named(tmp_path: Path) -> None:
    writer = ScoreWriter(tmp_path, PARADIGMS)
    score(writer, 1)
    (name,) = writer.seal()
    (tmp_path / name).write_bytes(b"half a segment")
    with pytest.raises(DataError, match=f"{name}: a sealed score segment cannot be read"):
        Segments("w", tmp_path).scores()
    for content in (b"", bytes(500)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=f"{name}: a sealed .* train its window again"):
            ScoreWriter(tmp_path, PARADIGMS).restore([name])
    (tmp_path / name).unlink()
    with pytest.raises(DataError, match=f"sealed segment {name} is missing"):
        ScoreWriter(tmp_path, PARADIGMS).restore([name])


@pytest.mark.parametrize("shape", [(2, 2), (1, 1), (1, 3)])
def test_scores_have_a_column_for_each_paradigm(tmp_path: Path, shape: tuple[int, int]) -> None:
    writer = ScoreWriter(tmp_path, PARADIGMS)
    with pytest.raises(ValueError, match="scores of shape"):
        writer.append(minibatch("stream", [1]), np.zeros(shape, np.float32))


def test_rows_wait_in_memory_only_up_to_a_bound(tmp_path: Path) -> None:
    writer = ScoreWriter(tmp_path, PARADIGMS)
    for first in range(0, 20_000, 5_000):
        score(writer, *range(first, first + 5_000))
    (segment,) = tmp_path.iterdir()
    assert segment.stat().st_size > 20_000 * 16 / 2, "most of them are written before any seal"
    writer.seal()
    assert ids_of(tmp_path)[0] == list(range(20_000))


def test_rows_that_nothing_scores_are_kept_as_published_alone(tmp_path: Path) -> None:
    writer = ScoreWriter(tmp_path, PARADIGMS)
    writer.append_published(minibatch("stream", [1, 2]))
    writer.seal()
    writer.append_published(minibatch("stream", [3]))
    score(writer, 4)
    names, published = writer.seal(), there(Segments("w", tmp_path).published())
    assert published.column("event_id").to_pylist() == [1, 2, 3, 4]
    assert published.column_names == ["event_id", "fresh", "event_time", "wait", "source", "held"]
    assert ids_of(tmp_path) == ([4], [])
    again = ScoreWriter(tmp_path, PARADIGMS)
    again.restore([name for name in names if name.startswith("published")])
    assert ids_of(tmp_path) == ([], [])
    again.append_published(minibatch("stream", [5]))
    again.seal()
    published = there(Segments("w", tmp_path).published())
    assert published.column("event_id").to_pylist() == [1, 2, 3, 5]
