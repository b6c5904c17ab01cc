"""GuardAlarm: tells in the log when a learner's guard paused and when it resumed."""

from __future__ import annotations

import logging

from forebay.mixture.learner import Learner

_LOG = logging.getLogger(__name__)


class GuardAlarm:
    """Looks at one learner's guards now and then; each look reads variables of the model."""

    def __init__(self, learner: Learner) -> None:
        """Nothing is paused as far as is known."""
        self._learner = learner
        self._paused: set[str] = set()

    def look(self, window: str, step: int) -> None:
        """Tell what changed since the last look."""
        guards = self._learner.guards()
        paused = {name for name, state in guards.items() if state.paused}
        if begun := sorted(paused - self._paused):
            state = guards[begun[0]]
            _LOG.warning(
                "window %s, step %d: learning of %s from the stream is paused: of the last rows "
                "%.1f were positive, weighted by age, and memory expected %.1f. Memory answers "
                "until labels come again; train.guard: false switches this off",
                window,
                step,
                ", ".join(begun),
                state.observed,
                state.expected,
            )
        if ended := sorted(self._paused - paused):
            _LOG.warning("window %s, step %d: %s learns again", window, step, ", ".join(ended))
        self._paused = paused
