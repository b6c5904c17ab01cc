"""GuardAlarm: logs when a learner's guard paused or resumed, and for which source."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from forebay.mixture.learner import Learner

_LOG = logging.getLogger(__name__)
_MEANWHILE = "Until labels arrive again, scores come from the memory tower alone"
_WHILE_OTHERS_TEACH = (
    "While every source of the stream is paused, scores come from the memory tower alone"
)


class GuardAlarm:
    """Checks one learner's guards from time to time; each check reads variables of the model."""

    def __init__(self, learner: Learner, names: Sequence[str]) -> None:
        """Nothing is known to be paused yet. names: those of the sources, by index."""
        self._learner = learner
        self._names = list(names)
        self._paused: dict[str, list[str]] = {}

    def look(self, window: str, step: int) -> None:
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
                    "window %s, step %d: training of %s on source %s is paused: %.1f of its last "
                    "rows were positive (weighted by age), but memory expected %.1f. %s; "
                    "train.guard: false turns this off",
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
            _LOG.warning("window %s, step %d: %s trains on %s again", window, step, again, source)
        self._paused = paused
