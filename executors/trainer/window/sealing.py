"""WindowSealer: one barrier for model, positions, row sums, scores and counters of a window."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from forebay.datatasks.tasks import TaskProgress
from forebay.executors.trainer.window.open_window import OpenWindow
from forebay.executors.trainer.window.parts import TrainerParts
from forebay.executors.trainer.window.sealed_rows import learnt_rows_of, row_times
from forebay.executors.window_files.checkpoints import Seal
from forebay.mixture.guard_alarm import GuardAlarm


class WindowSealer:
    def __init__(self, parts: TrainerParts) -> None:
        self._parts = parts
        self._alarm = GuardAlarm(parts.learner, parts.names)
        self._sealed_at = time.monotonic()

    def is_due(self, opened: OpenWindow) -> bool:
        """Whether there is enough to seal: by steps, and in a window that grows by time too."""
        job, steps = self._parts.pipeline.job, opened.window_step - opened.sealed_step
        if not opened.plan.slice_seconds:
            return steps >= job.checkpoint.every_steps
        age = time.monotonic() - self._sealed_at
        is_old = age >= job.continuous.seal.total_seconds()
        return steps >= job.checkpoint.every_steps or (steps > 0 and is_old)

    def seal(self, opened: OpenWindow, *, final: bool) -> Seal:
        """Write a checkpoint of everything that was used; on return it is durable.

        Raises:
            InfrastructureError: when the disk fails.
        """
        parts = self._parts
        with parts.progress.phase("seal"):
            progress = parts.reader.progress()
            opened.series.write(row_times(progress), final=final)
            opened.counters.sync()
            if opened.judge is not None:
                opened.judge.flush()
            self._alarm.look(opened.request.key, opened.window_step)
            sealed = opened.store.write(parts.learner, self._seal(opened, progress, final=final))
        opened.sealed_step, self._sealed_at = opened.window_step, time.monotonic()
        opened.last_seal = sealed
        parts.progress.sealed(sealed)
        return sealed

    def _seal(self, opened: OpenWindow, progress: dict[str, TaskProgress], *, final: bool) -> Seal:
        parts = self._parts
        return Seal(
            window=opened.request.key,
            generation=opened.request.generation,
            step=opened.step,
            window_step=opened.window_step,
            final=final,
            plan=opened.plan.begun_as,
            parent=None if opened.parent is None else opened.parent.name,
            model_fingerprint=parts.model_fingerprint,
            progress=progress,
            base_seen=opened.base_seen,
            seen=parts.learner.seen(),
            base_learnt=opened.base_learnt,
            learnt=learnt_rows_of(parts.learner),
            letters=opened.letters.sealed(),
            scores=opened.scores.seal() if opened.scores is not None else [],
            sealed_at=datetime.now(UTC),
            runtime=parts.runtime,
        )
