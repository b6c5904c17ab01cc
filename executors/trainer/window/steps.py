"""WindowSteps: what one minibatch goes through in the window that is open."""

from __future__ import annotations

import numpy as np

from forebay.config.feeds import has_stream, unread_hours
from forebay.errors import TrainingError
from forebay.executors.trainer.inbox import Frame
from forebay.executors.trainer.window.open_window import OpenWindow
from forebay.executors.trainer.window.parts import TrainerParts
from forebay.executors.window_files.scores import ScoreWriter
from forebay.mixture.minibatch import Minibatch


class WindowSteps:
    """Score, write the scores, then learn: the order is what makes metrics progressive."""

    def __init__(self, parts: TrainerParts) -> None:
        """Nothing is learnt yet."""
        self._parts = parts
        self._has_stream = has_stream(parts.pipeline, parts.sources)
        self._unread_hours = unread_hours(parts.pipeline, parts.sources)

    def use(self, opened: OpenWindow, frame: Frame) -> None:
        """Use up a frame; one without rows only moves positions.

        Raises:
            TrainingError: for a loss that is not finite, with the rows that it came from.
        """
        minibatch = frame.minibatch
        if minibatch is not None and len(minibatch):
            self._step(opened, minibatch, frame.hour)
        self._parts.reader.used(frame)

    def _step(self, opened: OpenWindow, minibatch: Minibatch, hour: int) -> None:
        parts = self._parts
        if parts.join is not None and minibatch.feed == "batch":
            minibatch = parts.join.joined(minibatch)
        if opened.scores is not None and opened.request.warm_start:
            self._keep_published(opened.scores, minibatch)
        elif opened.scores is not None:
            self._keep_scores(opened.scores, minibatch)
        if opened.judge is not None:
            opened.judge.add(minibatch)
        parts.learner.set_phase(opened.request.phase_at(hour, self._unread_hours))
        opened.series.lost(self._learn(opened, minibatch), minibatch.feed)
        opened.window_step += 1
        opened.counters.add("used_rows", len(minibatch))
        counts = np.bincount(minibatch.sources, minlength=len(parts.names))
        lag_seconds = parts.progress.stepped(counts, hour, opened.step)
        opened.series.stepped(counts, lag_seconds)

    def _learn(self, opened: OpenWindow, minibatch: Minibatch) -> dict[str, float]:
        try:
            return self._parts.learner.learn(minibatch)
        except TrainingError as error:
            names = self._parts.names
            counts = np.bincount(minibatch.sources, minlength=len(names)).tolist()
            held = [each for each in zip(counts, names, strict=True) if each[0]]
            rows = ", ".join(f"{count} of {name}" for count, name in held)
            raise TrainingError(
                f"window {opened.request.key}, step {opened.window_step + 1}: {error}. Rows of the "
                f"minibatch: {rows}. The window stays untrained and the model that serves goes on. "
                "Way out: bound what the features may be (transform, scale, bucketise), or lower "
                "model.dense_learning_rate and model.embedding_learning_rate, then train it again"
            ) from error

    def _keep_scores(self, scores: ScoreWriter, minibatch: Minibatch) -> None:
        """Stream rows are judged; without any stream, batch rows are, their labels complete."""
        learner, join = self._parts.learner, self._parts.join
        judged = minibatch.feed == "stream" or not self._has_stream
        if judged and learner.paradigms:
            scores.append(minibatch, learner.score(minibatch))
        if minibatch.feed == "batch":
            scores.append(minibatch, None)
        elif join is not None:
            join.add(minibatch)

    def _keep_published(self, scores: ScoreWriter, minibatch: Minibatch) -> None:
        """A warm start scores nothing; batch rows after it ask what its stream said."""
        join = self._parts.join
        if minibatch.feed == "stream" and join is not None:
            scores.append_published(minibatch)
            join.add(minibatch)
