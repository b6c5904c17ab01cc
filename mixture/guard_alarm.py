"""GuardAlarm: tells in the log when a learner's guard paused and when it resumed, and for whom."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from forebay.mixture.learner import Learner

_LOG = logging.getLogger(__name__)
_MEANWHILE = "Memory answers until labels come again"
_WHILE_OTHERS_TEACH = "Memory answers while all sources of the stream are paused"


class GuardAlarm:
    """Looks at one learner's guards now and then; each look reads variables of the model."""

    def __init__(self, learner: Learner, names: Sequence[str]) -> None:
        """Nothing is paused as far as is known. names: of sources, by index."""
        self._learner = learner
        self._names = list(names)
        self._paused: dict[str, list[str]] = {}

    def look(self, window: str, step: int) -> None:
        """Tell what changed since the last look."""
        guards = self._learner.guards()
        watched = len({at for states in guards.values() for at, one in enumerate(states) if one})
        paused: dict[str, list[str]] = {}
        for at, source in enumerate(self._names):
            found = {name: each for name, states in guards.items() if (each := states[at])}
            held = sorted(name for name, state in found.items() if state.paused)
            if held:
                paused[source] = held
            if held and source not in self._paused:
                state = found[held[0]]
                _LOG.warning(
                    "window %s, step %d: learning of %s from source %s is paused: of its last rows "
                    "%.1f were positive, weighted by age, and memory expected %.1f. %s; "
                    "train.guard: false switches this off",
                    window,
                    step,
                    ", ".join(held),
                    source,
                    state.observed,
                    state.expected,
                    _MEANWHILE if watched == 1 else _WHILE_OTHERS_TEACH,
                )
        for source in self._paused.keys() - paused.keys():
            again = ", ".join(self._paused[source])
            _LOG.warning("window %s, step %d: %s learns again from %s", window, step, again, source)
        self._paused = paused
