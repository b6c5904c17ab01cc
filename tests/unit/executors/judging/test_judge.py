"""Which model judges which event, and what is stored of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.minibatches import labelled
from support.there import there

from forebay.config.specs.datasets import Feed
from forebay.datatasks.sources.common.values.row_ids import splitmix64
from forebay.executors.judging.judge import EventJudge, JudgingLink, Scorer, link_text
from forebay.executors.judging.sample import EventSample, in_sample
from forebay.executors.model_line.link import Parent
from forebay.executors.window_files.scores import ScoreWriter, Segments, judge_rows_max
from forebay.mixture.minibatch import Minibatch

HOUR = 3_600_000_000
LINKS = [JudgingLink(end * HOUR, Parent(window=f"h{end - 1}", generation=end)) for end in (1, 2, 3)]
NO_TIME = -(2**63)


def rows(ids: list[int], hours: list[float] | None, feed: Feed = "batch") -> Minibatch:
    made = labelled(feed, ids, [one % 2 for one in ids])
    if hours is None:
        return made
    times = [NO_TIME if hour == NO_TIME else int(hour * HOUR) for hour in hours]
    return replace(made, event_times=np.array(times, np.int64))


def scorer_of(name: Parent) -> Scorer:
    """Each link scores as its generation says."""
    return lambda minibatch: np.full((len(minibatch), 2), name.generation / 10, np.float32)


def judge(
    writer: ScoreWriter,
    rows_max: int = 100,
    scorer: Callable[[Parent], Scorer | None] = scorer_of,
    feed: Feed = "batch",
) -> EventJudge:
    sample = EventSample(rows_max, writer.judged_ids())
    return EventJudge(LINKS, feed, 5 * HOUR, sample, 2, scorer, writer)


def judged(folder: Path) -> dict[int, tuple[str, float]]:
    table = there(Segments("w", folder).judged())
    ids, links = table.column("event_id").to_pylist(), table.column("link").to_pylist()
    return dict(zip(ids, zip(links, table.column("score:b").to_pylist(), strict=True), strict=True))


def judged_by(one: EventJudge, writer: ScoreWriter, folder: Path, *served: Minibatch) -> Any:
    """Link and score of each event, by id."""
    for each in served:
        one.add(each)
    one.flush()
    writer.seal()
    return judged(folder)


@pytest.fixture
def writer(tmp_path: Path) -> ScoreWriter:
    return ScoreWriter(tmp_path, ["a", "b"], judge_rows_max=100)


def test_the_newest_link_that_had_ended_judges(writer: ScoreWriter, tmp_path: Path) -> None:
    served = rows([1, 2, 3, 4, 5], [1.0, 1.99, 2.0, 3.5, 0.99]), rows([6], [4.999])
    found = judged_by(judge(writer), writer, tmp_path, *served)
    assert {key: link for key, (link, _) in found.items()} == {
        **dict.fromkeys((1, 2), "h0 generation 1"),
        3: "h1 generation 2",
        **dict.fromkeys((4, 6), "h2 generation 3"),
        5: "",
    }
    assert found[4][1] == pytest.approx(0.3)
    assert np.isnan(found[5][1])


def test_nobody_judges_what_has_no_time_or_comes_after(writer: ScoreWriter, tmp_path: Path) -> None:
    found = judged_by(judge(writer), writer, tmp_path, rows([1, 2, 3], [NO_TIME, 5.0, 2.5]))
    assert {key: link for key, (link, _) in found.items()} == {1: "", 2: "", 3: "h1 generation 2"}


def test_rows_whose_link_is_gone_keep_its_name_alone(writer: ScoreWriter, tmp_path: Path) -> None:
    one = judge(writer, scorer=lambda name: None if name.generation == 1 else scorer_of(name))
    found = judged_by(one, writer, tmp_path, rows([1, 2], [1.5, 2.5]))
    assert found[1][0] == "h0 generation 1"
    assert np.isnan(found[1][1])
    assert found[2] == ("h1 generation 2", pytest.approx(0.2))


def test_rows_of_the_other_feed_or_no_time_are_left(writer: ScoreWriter, tmp_path: Path) -> None:
    one = judge(writer)
    one.add(rows([1], [1.5], "stream"))
    one.add(rows([2], None))
    one.flush()
    assert writer.seal() == []
    fresh = judge(writer, feed="stream")
    assert set(judged_by(fresh, writer, tmp_path, rows([1], [1.5], "stream"))) == {1}


def test_each_link_is_asked_for_once_however_small_the_minibatches(writer: ScoreWriter) -> None:
    asked: list[str] = []

    def scorer(name: Parent) -> Scorer:
        asked.append(link_text(name))
        return scorer_of(name)

    one = judge(writer, scorer=scorer)
    for number in range(50):
        one.add(rows([number, number + 100], [1.5, 2.5]))
    assert asked == []
    one.flush()
    assert asked == ["h0 generation 1", "h1 generation 2"]
    one.flush()
    assert len(asked) == 2


@pytest.mark.guarantee(
    "rows are served in another order after a kill", "nothing; the same events are judged"
)
def test_a_killed_window_judges_the_same_events_as_one_that_was_not(tmp_path: Path) -> None:
    def run(folder: Path, *, killed: bool) -> dict[int, tuple[str, float]]:
        made = ScoreWriter(folder, ["a", "b"], judge_rows_max=20)
        one = judge(made, 20)
        parts = [list(range(first, first + 25)) for first in range(0, 200, 25)]
        for part in parts[:4]:
            one.add(rows(part, [1.5] * 25))
        one.flush()
        sealed = made.seal()
        if killed:
            one.add(rows(parts[4], [1.5] * 25))  # never sealed
            one.flush()
            made = ScoreWriter(folder, ["a", "b"], judge_rows_max=20)
            made.restore(sealed)
            one = judge(made, 20)
            parts[4:] = reversed(parts[4:])  # other executors, another order
        for part in parts[4:]:
            one.add(rows(part, [1.5] * 25))
        one.flush()
        made.seal()
        assert judge_rows_max(there(Segments("w", folder).judged())) == 20
        return judged(folder)

    kept = []
    for killed in (False, True):
        found = run(tmp_path / str(killed), killed=killed)
        ids = np.array(sorted(found), np.int64)
        kept.append({key: found[key] for key in ids[in_sample(ids, 20)].tolist()})
    assert (kept[0], len(kept[0])) == (kept[1], 20)


IDS = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 9), max_size=60)
BOUNDS = st.integers(1, 12)


def hashed(event_id: int) -> int:
    return int(splitmix64(np.array([event_id], np.int64).view(np.uint64))[0])


def chosen(ids: list[int], rows_max: int) -> set[int]:
    """The definition: the events with the smallest hashes."""
    return set(sorted(set(ids), key=hashed)[:rows_max])


@given(IDS, BOUNDS)
def test_the_sample_is_the_events_with_the_smallest_hashes(ids: list[int], rows_max: int) -> None:
    mask, wanted = in_sample(np.array(ids, np.int64), rows_max), chosen(ids, rows_max)
    assert mask.tolist() == [each in wanted for each in ids]


@given(st.lists(IDS, max_size=8), BOUNDS, st.integers(0, 8), st.randoms())
def test_no_order_and_no_restart_changes_it(
    parts: list[list[int]], rows_max: int, restart_after: int, order: random.Random
) -> None:
    order.shuffle(parts)
    sample, accepted = EventSample(rows_max), np.empty(0, np.int64)
    for number, part in enumerate(parts):
        if number == restart_after:
            sample = EventSample(rows_max, accepted)
        ids = np.array(part, np.int64)
        accepted = np.concatenate([accepted, ids[sample.accept(ids)]])
    found = accepted[in_sample(accepted, rows_max)]
    every = [each for part in parts for each in part]
    assert set(found.tolist()) == chosen(every, rows_max)
    assert sorted(found.tolist()) == sorted(each for each in every if each in set(found.tolist()))


def test_of_many_rows_few_more_than_the_bound_are_taken() -> None:
    sample, taken = EventSample(1_000), 0
    for first in range(0, 1_000_000, 1_000):
        taken += len(sample.accept(np.arange(first, first + 1_000)))
    assert 1_000 <= taken < 1_000 * 2 * np.log(1_000)


def test_nothing_is_taken_where_nothing_is_judged() -> None:
    assert len(EventSample(0).accept(np.arange(9))) == 0
