"""Judged rows as trainers of several windows write them, without training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from forebay.config.specs.datasets import Feed
from forebay.executors.window_files.scores import NO_TIME, ScoreWriter
from forebay.mixture.minibatch import Minibatch
from support.minibatches import labelled

HOUR = 3_600_000_000
Event = tuple[int, float, float]


def timed(feed: Feed, events: Sequence[Event], source: int = 0) -> Minibatch:
    made = labelled(feed, [one for one, _, _ in events], [label for _, _, label in events])
    times = np.array([max(int(hour * HOUR), NO_TIME) for _, hour, _ in events], np.int64)
    sources = np.full(len(events), source, np.int32)
    ids = np.array([[one % 3] for one, _, _ in events], np.int64)
    return replace(made, event_times=times, sources=sources, ids=ids)


def write_judged(
    folder: Path,
    columns: Sequence[str],
    judged: Sequence[Event] = (),
    scores: Mapping[int, Sequence[float]] | None = None,
    *,
    fresh: Sequence[Event] = (),
    link: str = "h generation 1",
    rows_max: int = 1_000,
    source: int = 0,
    sliced: bool = True,
) -> None:
    """What one window leaves: `judged` batch rows, scored as `scores` says or by nobody; and
    `fresh` stream rows."""
    writer = ScoreWriter(folder, columns, {"kind": 0} if sliced else {}, rows_max)
    if fresh:
        zeros = np.zeros((len(fresh), len(columns)), np.float32)
        writer.append(timed("stream", fresh), zeros)
    if judged:
        rows = timed("batch", judged, source)
        found = np.full((len(judged), len(columns)), np.nan, np.float32)
        for place, (event, _, _) in enumerate(judged):
            if scores is not None and event in scores:
                found[place] = scores[event]
        writer.append(rows, None)
        writer.append_judged(rows, link, found)
    writer.seal()
