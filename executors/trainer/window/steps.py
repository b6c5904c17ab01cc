"""WindowSteps: what one minibatch goes through in the window that is open."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from forebay.config.specs.feeds import has_stream, unread_hours
from forebay.errors import TrainingError
from forebay.executors.trainer.inbox import Frame
from forebay.executors.trainer.window.open_window import OpenWindow
from forebay.executors.trainer.window.parts import TrainerParts
from forebay.mixture.minibatch import Minibatch

_HOUR_SECONDS = 3600.0
Scores = npt.NDArray[np.float32]


class WindowSteps:
    """Score, then train: the order is what makes metrics progressive.

    Scores are written after that, since only training shows which rows the guard held.
    """

    def __init__(self, parts: TrainerParts) -> None:
        self._parts = parts
        self._has_stream = has_stream(parts.pipeline, parts.sources)
        self._unread_hours = unread_hours(parts.pipeline, parts.sources)

    def use(self, opened: OpenWindow, frame: Frame) -> None:
        """Use up a frame; one without rows only moves positions.

        Raises:
            TrainingError: for a loss that is not finite, with the rows that it came from.
            InfrastructureError: when its dead letters cannot be written.
        """
        minibatch = frame.minibatch
        if minibatch is not None and len(minibatch):
            self._step(opened, minibatch, frame.hour)
        opened.letters.append(frame.letters)
        self._parts.progress.used(self._parts.reader.used(frame), frame.progress)

    def _step(self, opened: OpenWindow, minibatch: Minibatch, hour: int) -> None:
        parts = self._parts
        if parts.join is not None and minibatch.feed == "batch":
            minibatch = parts.join.joined(minibatch)
        scores = self._scores(opened, minibatch)
        if opened.judge is not None:
            opened.judge.add(minibatch)
        parts.learner.set_phase(opened.request.phase_at(hour, self._unread_hours))
        opened.series.lost(self._learn(opened, minibatch), minibatch.feed)
        self._keep(opened, minibatch.after_guards(parts.learner.held()), scores)
        opened.window_step += 1
        opened.counters.add("used_rows", len(minibatch))
        counts = np.bincount(minibatch.sources, minlength=len(parts.names))
        into_seconds = hour * (opened.plan.slice_seconds or _HOUR_SECONDS)
        lag_seconds = parts.progress.stepped(counts, into_seconds, opened.step)
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
                f"minibatch: {rows}. The window stays untrained, and the serving model is not "
                "changed. "
                "What to do: bound the features' values (transform, scale, bucketise), or lower "
                "model.dense_learning_rate and model.embedding_learning_rate, then train it again"
            ) from error

    def _scores(self, opened: OpenWindow, minibatch: Minibatch) -> Scores | None:
        """Scores of stream rows, or of batch rows if there is no stream; none in a warm start."""
        learner = self._parts.learner
        judged = minibatch.feed == "stream" or not self._has_stream
        wanted = judged and opened.scores is not None and not opened.request.warm_start
        return learner.score(minibatch) if wanted and learner.paradigms else None

    def _keep(self, opened: OpenWindow, minibatch: Minibatch, scores: Scores | None) -> None:
        writer, join = opened.scores, self._parts.join
        if writer is None:
            return
        if scores is not None:
            writer.append(minibatch, scores)
        if minibatch.feed == "batch":
            if not opened.request.warm_start:
                writer.append(minibatch, None)
        elif join is not None:
            if opened.request.warm_start:
                writer.append_published(minibatch)
            join.add(minibatch)
