"""Ends a process that is alive but makes no progress: it logs its stacks, then gets SIGKILL.

`HangWatch` decides, from the pulse of a process and one steady clock; `HangGuard` acts.
"""

from __future__ import annotations

import logging

from forebay.system.liveness import Pulse, PulseFile
from forebay.system.processes.identity import ProcessIdentity

LOOK_SECONDS = 1.0
# Between the request for stacks and SIGKILL.
GRACE_SECONDS = 2.0
# A process has at least this long until its first sign of life: it imports its libraries.
STARTING_SECONDS = 60.0
# A look that comes this long after the previous one starts over: the watcher itself was stopped,
# and maybe the whole machine with it.
_PAUSE_SECONDS = 5.0
_LOG = logging.getLogger(__name__)


class HangWatch:
    """Whether one process hangs. Instants are seconds of one steady clock, the caller's."""

    def __init__(self, deadline_seconds: float, now: float) -> None:
        self._deadline = deadline_seconds
        self._beats = 0
        self._since = self._looked_at = now

    def reason(self, pulse: Pulse | None, now: float) -> str | None:
        """Why the process counts as hung; None if it does not."""
        beats = 0 if pulse is None else pulse.beats
        if beats != self._beats or now - self._looked_at > _PAUSE_SECONDS:
            self._beats, self._since = beats, now
        self._looked_at = now
        silent = now - self._since
        if pulse is None:
            limit = max(self._deadline, STARTING_SECONDS)
            return f"no sign of life for {silent:.0f} s after its start" if silent > limit else None
        if silent > self._deadline:
            return f"no sign of life for {silent:.0f} s"
        if pulse.still_seconds > self._deadline:
            return f"no progress for {pulse.still_seconds:.0f} s ({pulse.doing})"
        return None


class HangGuard:
    """Watches one process, and ends it when it hangs.

    reason: why the newest process was ended; empty if it was not. is_alive: whether that process
    has shown a sign of life.
    """

    def __init__(self, name: str, pulse: PulseFile, deadline_seconds: float) -> None:
        self.reason, self.is_alive = "", False
        self._name = name
        self._pulse = pulse
        self._deadline = deadline_seconds
        self._watch: HangWatch | None = None
        self._next_at = 0.0

    def begin(self, now: float) -> None:
        self._pulse.forget()
        self.reason, self.is_alive = "", False
        self._watch = HangWatch(self._deadline, now)
        self._next_at = now

    def tick(self, process: ProcessIdentity, now: float) -> bool:
        """Take the next step if it hangs; whether it was found so just now. Nothing here waits."""
        if self._watch is None or now < self._next_at:
            return False
        if self.reason:
            process.kill()
            self._watch = None
            return False
        self._next_at = now + LOOK_SECONDS
        pulse = self._pulse.read()
        self.is_alive = self.is_alive or pulse is not None
        reason = self._watch.reason(pulse, now)
        if reason is not None:
            _LOG.warning(
                "%s hangs: %s; its stacks are logged, then it is killed", self._name, reason
            )
            self.reason = f"hung: {reason}"
            self._next_at = now + GRACE_SECONDS
            process.write_stacks()
        return reason is not None
