"""What the benchmark of learning feeds, in which order, and how it judges, without TensorFlow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from learning_figures import Run, figures_of, pooled_auc
from market_replay import HISTORY_HOURS, HOUR_US, START_US, replay_market
from replay import HISTORY, ROWS, STREAM, Replayed, Span
from support.there import there

from examples.demo.data.ad_market import MARKETS, Events, Market, generate
from forebay.config.specs.feeds import Phase
from forebay.mixture.label_guard import GuardState
from forebay.mixture.metrics.auc import estimate_auc
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.score_columns import ScoreColumn

DAYS = 3
SPAN = Span(DAYS * 24, 24, 36, 6)


@dataclass
class Watching:
    """Learns nothing and keeps what it was given, in order."""

    phases: list[Phase] = field(default_factory=list)
    given: list[tuple[str, Minibatch]] = field(default_factory=list)
    columns: Sequence[ScoreColumn] = (ScoreColumn("stream"), ScoreColumn("batch"))

    def set_phase(self, phase: Phase) -> None:
        self.phases.append(phase)

    def score(self, minibatch: Minibatch) -> npt.NDArray[np.float32]:
        self.given.append(("score", minibatch))
        return np.stack([minibatch.labels, minibatch.labels / 2], axis=1)

    def learn(self, minibatch: Minibatch) -> dict[str, float]:
        self.given.append((minibatch.feed, minibatch))
        return {}

    def learnt(self) -> dict[str, list[int]]:
        return {"stream": [0, 5], "batch": [7, 0]}

    def held(self) -> npt.NDArray[np.bool_] | None:
        return None

    def guards(self) -> dict[str, list[GuardState | None]]:
        paused = len(self.phases) in {40, 41, SPAN.windows}
        return {"stream": [None, GuardState(paused=paused)]}


Watched = tuple[Watching, Replayed]


@pytest.fixture(scope="module")
def events() -> Events:
    return generate(MARKETS["late conversions"], 3, days=DAYS, hourly=300)


def watch(market: Market, events: Events, span: Span, **more: Any) -> Watched:
    watching = Watching()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("market_replay.make_learner", lambda *_: watching)
        found = replay_market(market, events, {"paradigm": "stream"}, {}, span=span, **more)
    return watching, found


@pytest.fixture(scope="module")
def watched(events: Events) -> Watched:
    return watch(MARKETS["late conversions"], events, SPAN)


def hours_of(events: Events) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """In which hour each event happened, and was published."""
    return (events.at - START_US) // HOUR_US, (events.published - START_US) // HOUR_US


def rows_of(watching: Watching, what: str) -> npt.NDArray[np.int64]:
    return np.concatenate([one.row_ids for kind, one in watching.given if kind == what])


def test_every_row_is_learnt_once_in_its_own_window(watched: Watched, events: Events) -> None:
    watching, _ = watched
    hour, published = hours_of(events)
    history, stream = rows_of(watching, "batch"), rows_of(watching, "stream")
    assert (history % 2 == HISTORY).all()
    assert (stream % 2 == STREAM).all()
    assert sorted(history // 2) == np.flatnonzero(hour + HISTORY_HOURS < SPAN.windows).tolist()
    assert sorted(stream // 2) == np.flatnonzero(published < SPAN.windows).tolist()
    assert (np.diff(hour[history // 2]) >= 0).all()
    assert (np.diff(published[stream // 2]) >= 0).all()


def test_an_event_is_scored_before_anything_of_its_hour_is_learnt(
    watched: Watched, events: Events
) -> None:
    watching, found = watched
    hour, published = hours_of(events)
    newest, scored = -1, 0
    for kind, one in watching.given:
        if kind == "score":
            (now,) = np.unique(hour[one.row_ids // 2])
            assert newest < now
            scored += len(one)
        elif kind == "stream":
            newest = max(newest, published[one.row_ids // 2].max())
        else:
            newest = max(newest, hour[one.row_ids // 2].max() + HISTORY_HOURS)
    assert scored == len(found.scores) == (hour >= SPAN.judged_from).sum()
    assert (found.converted == events.converted[hour >= SPAN.judged_from]).all()


def test_minibatches_are_full_but_for_the_last_and_feeds_take_turns(watched: Watched) -> None:
    watching, _ = watched
    sizes = [len(one) for kind, one in watching.given if kind != "score"]
    assert max(sizes) == ROWS
    kinds = "".join(kind[0] for kind, _ in watching.given if kind != "score")
    assert "bsbs" in kinds
    assert "bbbb" not in kinds
    assert watching.phases == ["warm_start"] * 18 + ["warm_start_end"] * 6 + ["window"] * 48


def test_batch_rows_say_what_the_stream_knew(watched: Watched, events: Events) -> None:
    watching, _ = watched
    for kind, one in watching.given:
        rows = one.row_ids // 2
        assert (there(one.waits) == 3600.0).all()
        assert (one.event_times == events.at[rows]).all()
        if kind == "stream":
            assert one.known is None
            assert (one.labels == events.known[rows]).all()
        else:
            late = events.converted[rows] & ~events.known[rows]
            assert (there(one.known) == ~late).all()
            assert (one.labels == events.converted[rows]).all()


def test_events_that_are_not_in_the_stream_say_nothing_of_it() -> None:
    market = MARKETS["sparse stream"]
    events = generate(market, 1, days=2, hourly=100)
    watching, _ = watch(market, events, Span(48, 0, 0, 0))
    parts = [one for kind, one in watching.given if kind == "batch"]
    for one in parts:
        absent = ~events.streamed[one.row_ids // 2]
        assert (np.isnan(there(one.known)) == absent).all()
        assert (np.isnan(there(one.waits)) == absent).all()


def test_pauses_are_noted_from_when_until_when(watched: Watched) -> None:
    _, found = watched
    first, last = found.pauses
    assert first[0] == last[0] == "stream"
    assert 39 < first[1] <= 40
    assert 41 < first[2] <= 42
    assert 71 < last[1] <= last[2] == 72


def test_figures_compare_events_of_one_hour_only(watched: Watched) -> None:
    _, found = watched
    assert pooled_auc(found).values.tolist() == [1.0, 1.0]
    shifted = found.scores + found.windows[:, np.newaxis].astype(np.float32)
    moved = Replayed(**{**vars(found), "scores": shifted})
    assert pooled_auc(moved).values.tolist() == [1.0, 1.0]
    figures = figures_of("a regime", 3, found, 0.5)
    assert figures.calibration == {"stream": 1.0, "batch": 0.5}
    assert figures.auc == {"stream": 1.0, "batch": 1.0}


def test_halves_of_events_and_windows_add_up_to_all(watched: Watched) -> None:
    _, found = watched
    random = np.random.default_rng(1).random(found.scores.shape).astype(np.float32)
    run = figures_of("a regime", 3, Replayed(**{**vars(found), "scores": random}), 0.5)
    again = Run(**json.loads(json.dumps(run._asdict())))
    assert [one.positives for one in again.figures()] == [
        found.converted[found.windows == window].sum() for window in np.unique(found.windows)
    ]
    first, second = run.auc_of_half(0), run.auc_of_half(1)
    for name, auc in run.auc.items():
        assert first[name] != second[name]
        assert (first[name] + second[name]) / 2 == pytest.approx(auc, abs=0.03)
    last = run.auc_of_half(1, since=len(run.halves) - 1)
    rows = np.flatnonzero(found.windows == found.windows[-1])[1::2]
    expected = there(estimate_auc(found.converted[rows], random[rows])).values.tolist()
    assert list(last.values()) == pytest.approx(expected)


def test_daily_windows_learn_what_hourly_ones_do(events: Events) -> None:
    span = Span(DAYS, 1, 2, 1)
    watching, found = watch(MARKETS["late conversions"], events, span, window_hours=24)
    assert watching.phases == ["warm_start_end", "window", "window"]
    day = (events.at - START_US) // (24 * HOUR_US)
    assert (found.windows == 2).all()
    assert len(found.windows) == (day == 2).sum()
    history = np.concatenate([one.row_ids for kind, one in watching.given if kind == "batch"])
    assert sorted(history // 2) == np.flatnonzero(day < DAYS - 1).tolist()
