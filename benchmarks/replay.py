"""Feeds two encoded feeds to a learner, window by window, in process, and keeps what it answered.

As a line of windows does it: window W learns the rows of both feeds that are its own, side by side
in minibatches of which the last of each feed may be small. Before that, every event of W is scored
by the weights as they were when W began.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.config.specs.datasets import Feed
from forebay.config.specs.feeds import Phase
from forebay.mixture.features.encode import Encoder
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.features.served import to_minibatch
from forebay.mixture.learner import Learner
from forebay.mixture.minibatch import Minibatch

ROWS = 256
HISTORY, STREAM = 0, 1  # source indices

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Feeds:
    """What a line reads: each feed's rows in the order of its windows, and what is judged.

    *_windows: int64[N], ascending, the number of the window that learns a row, or in which an
    event happened; below 0 nothing is learnt. converted: bool[N], complete labels of the events.
    """

    history: Minibatch
    history_windows: Ints
    stream: Minibatch
    stream_windows: Ints
    events: Minibatch
    event_windows: Ints
    converted: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Replayed:
    """What the models answered: scores float32[N, columns] of the N events that are judged.

    windows: int64[N], the window of each event. converted: its complete label. learnt: rows that
    each variant has learnt from, by source. pauses: (guarded variant, from, to) in windows.
    cpu_seconds: of scoring and learning, all variants together.
    """

    columns: tuple[str, ...]
    windows: Ints
    converted: npt.NDArray[np.bool_]
    scores: npt.NDArray[np.float32]
    learnt: dict[str, list[int]]
    pauses: list[tuple[str, float, float]]
    cpu_seconds: float


class Span(NamedTuple):
    """What is replayed: `windows` in all, of which the first `warm` are one warm start.

    judged_from: the first window whose events are judged. unread: the last windows of the warm
    start whose history comes after it.
    """

    windows: int
    warm: int
    judged_from: int
    unread: int

    def phase(self, window: int) -> Phase:
        """What the rows of a window belong to."""
        if window >= self.warm:
            return "window"
        return "warm_start_end" if window >= self.warm - self.unread else "warm_start"


class Window(NamedTuple):
    """A window that was learnt, and the minibatches so far."""

    number: int
    steps: int


def encoded(rows: pa.Table, encoder: Encoder, feed: Feed, layout: FeatureLayout) -> Minibatch:
    """All rows of a feed as one minibatch; they have a column `id`."""
    batch = rows.combine_chunks().to_batches()[0]
    source = HISTORY if feed == "batch" else STREAM
    served = encoder.encode(batch, batch["id"].to_numpy() * 2 + source).batch
    return to_minibatch(served, [(source, batch.num_rows)], feed, layout)


def replay(
    learner: Learner, feeds: Feeds, span: Span, after_window: Callable[[Window], None] | None = None
) -> Replayed:
    """Learn all windows, and score every judged event before it is learnt."""
    scores, steps, pauses = [], 0, Pauses()
    copies = Copies(feeds.history)
    feeds = replace(feeds, history=copies.history)
    began = time.process_time()
    for number in range(span.windows):
        learner.set_phase(span.phase(number))
        if number >= span.judged_from:
            first, last = np.searchsorted(feeds.event_windows, [number, number + 1]).tolist()
            scores.append(learner.score(part(feeds.events, first, last)))
        for done, minibatch in minibatches(feeds, number):
            learner.learn(minibatch)
            copies.learnt(minibatch, learner.held())
            steps += 1
            pauses.note(number + done, learner)
        if after_window is not None:
            after_window(Window(number, steps))
    judged = (feeds.event_windows >= span.judged_from) & (feeds.event_windows < span.windows)
    return Replayed(
        columns=tuple(column.name for column in learner.columns),
        windows=feeds.event_windows[judged],
        converted=feeds.converted[judged],
        scores=np.concatenate(scores),
        learnt=learner.learnt(),
        pauses=pauses.ended(span.windows),
        cpu_seconds=time.process_time() - began,
    )


def minibatches(feeds: Feeds, number: int) -> list[tuple[float, Minibatch]]:
    """Minibatches of a window, those of both feeds at one pace, and how much is done after each."""
    parts = [
        *_cut(feeds.history, feeds.history_windows, number),
        *_cut(feeds.stream, feeds.stream_windows, number),
    ]
    return sorted(parts, key=lambda part: part[0])


def part(feed: Minibatch, start: int, end: int) -> Minibatch:
    """Rows of a feed without lists."""
    arrays = {each.name: getattr(feed, each.name) for each in fields(feed)}
    return replace(
        feed,
        **{
            name: values[start:end]
            for name, values in arrays.items()
            if isinstance(values, np.ndarray)
        },
    )


class Copies:
    """What history knows of its copies in the stream: nothing of those that the guard held."""

    def __init__(self, history: Minibatch) -> None:
        """history: its `known` stays as it is; that of the attribute is another array."""
        known = None if history.known is None else history.known.copy()
        self.history = replace(history, known=known)
        self._order = np.argsort(history.event_ids)

    def learnt(self, minibatch: Minibatch, held: npt.NDArray[np.bool_] | None) -> None:
        """Rows were learnt but for those held, bool[N, 1]; every row of the stream has a copy."""
        known = self.history.known
        if known is None or held is None or not held.any():
            return
        ids = minibatch.event_ids[held[:, 0]]
        places = np.searchsorted(self.history.event_ids, ids, sorter=self._order)
        known[self._order[places]] = np.nan


class Pauses:
    """Notes after each minibatch which guarded variants are paused."""

    def __init__(self) -> None:
        """None are."""
        self._since: dict[str, float] = {}
        self._over: list[tuple[str, float, float]] = []

    def note(self, window: float, learner: Learner) -> None:
        """Look at the guards when so much is learnt."""
        for name, states in learner.guards().items():
            if any(state is not None and state.paused for state in states):
                self._since.setdefault(name, window)
            elif name in self._since:
                self._over.append((name, self._since.pop(name), window))

    def ended(self, windows: float) -> list[tuple[str, float, float]]:
        """Every pause: variant, from when, until when."""
        return [*self._over, *((name, since, windows) for name, since in self._since.items())]


def _cut(feed: Minibatch, windows: Ints, number: int) -> Sequence[tuple[float, Minibatch]]:
    """Minibatches of a window, each with the part of the window's rows that is done after it."""
    first, last = np.searchsorted(windows, [number, number + 1]).tolist()
    starts = range(first, last, ROWS)
    ends = [min(start + ROWS, last) for start in starts]
    return [
        ((end - first) / (last - first), part(feed, start, end))
        for start, end in zip(starts, ends, strict=True)
    ]
