"""The source operation of a command: it looks until nothing is late, and keeps what it found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event

from forebay.datatasks.planning.lister import Answers, Late, ScanFacts, SourceLister
from forebay.datatasks.planning.operations import Listed, Share
from forebay.errors import InfrastructureError

_POLL_FIRST_SECONDS, _POLL_MAX_SECONDS = 0.05, 5.0


@dataclass
class SourceOperation(Answers):
    """One use of a source in many windows, in order of time. Called by one thread at a time.

    waiting: told the window, the use and the reason, once for each window that is waited for.
    listed: the answers, by window. stop: set when nobody wants them any more.
    """

    lister: SourceLister
    shares: Sequence[Share]
    waiting: Callable[[str, str, str], None] = lambda _window, _use, _reason: None
    listed: dict[str, Listed] = field(default_factory=dict)
    stop: Event = field(default_factory=Event)
    _since: datetime | None = None  # the wait for late data is one for all windows

    def list_window(self, window: str) -> None:
        """Wait until one window is listed, or its source is late for too long.

        Raises:
            ForebayError: as `SourceLister.look`.
        """
        if window in self.listed:
            return
        wait, pause, told = self.lister.spec.ready.wait, _POLL_FIRST_SECONDS, False
        while (late := self.look(window)) is not None:
            if not late.is_over:
                self._since = late.since
            if not told:
                self.waiting(window, late.share.source, late.reason)
                told = True
            left = (late.since + wait - self.lister.clock()).total_seconds()
            if self.stop.wait(max(0.0, min(pause, left))):
                raise InfrastructureError("planning was ended")
            pause = min(pause * 1.5, _POLL_MAX_SECONDS)

    def look(self, window: str) -> Late | None:
        """List one window, and later ones with it, or say that it is late."""
        at = next(i for i, share in enumerate(self.shares) if share.window.key == window)
        return self.lister.look(self, [self.shares[at]], self.shares[at + 1 :])

    def has(self, share: Share) -> bool:
        return share.window.key in self.listed

    def keep(self, share: Share, listed: Listed, _at: datetime, _scan: ScanFacts) -> None:
        self.listed[share.window.key] = listed

    def late_since(self, _share: Share, at: datetime, _reason: str) -> datetime:
        self._since = self._since or at
        return self._since
