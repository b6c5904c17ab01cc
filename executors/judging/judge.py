"""EventJudge: scores rows with the models that would have answered, while their window is trained.

An event is judged by the newest link of the line that had ended when it happened. Its complete
label comes with a later window, whose trainer scores it with a second learner, loaded from the
checkpoint of that link. The link was trained before the event, so not on it.

The trainer does so because its process has TensorFlow: starting it elsewhere took 3 s of CPU time.
Here, with mixture, stream and mixed side by side, the second learner took 0.3 s once, a load 0.03
to 0.1 s (checkpoints of 11 and 208 MiB) and a row 2 µs, where a step takes 13 µs a row. It takes as
much memory as another learner's variables: 0.37 GiB where the checkpoint has 208 MiB.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from forebay.config.specs.datasets import Feed
from forebay.executors.judging.sample import EventSample
from forebay.executors.model_line.link import Parent
from forebay.executors.window_files.scores import ScoreWriter
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.minibatch_rows import joined, take

# Scored at once: calling the model costs as much as a few hundred rows.
_ROWS_AT_ONCE = 4_096
_NOBODY = -1

Scores = npt.NDArray[np.float32]
Scorer = Callable[[Minibatch], Scores]


class JudgingLink(NamedTuple):
    """A link that may judge. end: of its window, in microseconds since 1970 UTC."""

    end: int
    name: Parent


@dataclass(eq=False)
class EventJudge:
    """Judges the rows of one window. Not safe for several threads.

    links: the newest ones of windows before this one, in order. feed: whose rows have complete
    labels. end: of the window: no model has answered for events that are dated later. columns: of
    scores. scorer: the model of a link; None where its checkpoint is no longer kept. A scorer must
    not be used after the next call.
    """

    links: Sequence[JudgingLink]
    feed: Feed
    end: int
    sample: EventSample
    columns: int
    scorer: Callable[[Parent], Scorer | None]
    writer: ScoreWriter

    def __post_init__(self) -> None:
        self._ends = np.array([link.end for link in self.links], np.int64)
        self._waiting: dict[int, list[Minibatch]] = {}
        self._rows = 0

    def add(self, minibatch: Minibatch) -> None:
        """Take rows of a step; those without a complete label or a time are not judged."""
        times = minibatch.event_times
        if minibatch.feed != self.feed or times is None:
            return
        places = self.sample.accept(minibatch.event_ids)
        if not len(places):
            return
        judges = self._judges(times[places])
        for judge in np.unique(judges).tolist():
            rows = take(minibatch, places[judges == judge])
            self._waiting.setdefault(judge, []).append(rows)
        self._rows += len(places)
        if self._rows >= _ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Score the waiting rows and write them: before each seal."""
        for judge in sorted(self._waiting):
            rows = joined(self._waiting[judge])
            name = None if judge == _NOBODY else self.links[judge].name
            scorer = None if name is None else self.scorer(name)
            if scorer is None:
                scores = np.full((len(rows), self.columns), np.nan, np.float32)
            else:
                scores = scorer(rows)
            self.writer.append_judged(rows, "" if name is None else link_text(name), scores)
        self._waiting, self._rows = {}, 0

    def _judges(self, times: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
        found = np.searchsorted(self._ends, times, side="right") - 1
        return np.where(times < self.end, found, _NOBODY)


def link_text(name: Parent) -> str:
    """How a link is named in a segment: `2026-03-01T07 generation 2`."""
    return f"{name.window} generation {name.generation}"
