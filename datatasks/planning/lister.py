"""One use of a source, looked at: its windows are listed in as few scans as readiness allows.

A command looks again until nothing is late, and keeps the answers in memory; a stage of Airflow
looks once, keeps them in the database, and says what it waits for.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, Protocol

from forebay.config.specs.registry import kind_named
from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.planning.border_rows import DecidedBorders
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.planning.operations import (
    Clock,
    Listed,
    Share,
    complete_among,
    declaration_of,
    left_out,
    nothing_in,
    scan_shares,
    too_late,
)
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.sources.common.contract.base import Source, SourcePlanner
from forebay.datatasks.sources.common.contract.plan_cache import PlanCache
from forebay.errors import DataError, InfrastructureError

# How long to wait for another scan of files, whose footers are in the cache then: that saves
# storage calls, and nothing depends on it.
SHARED_SECONDS = 30.0
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Late:
    """A share that is not complete.

    since: from when its source's `ready.wait` counts. is_over: whether the share's own time is.
    """

    share: Share
    reason: str
    since: datetime
    is_over: bool


class ScanFacts(NamedTuple):
    """The scan that found an answer: its storage calls, and how many windows it listed."""

    storage_calls: int = 0
    windows: int = 0


class Answers(Protocol):
    """Where answers are kept from one look to the next."""

    def has(self, share: Share) -> bool:
        """Whether the share needs no look."""

    def keep(self, share: Share, listed: Listed, at: datetime, scan: ScanFacts, /) -> None:
        """Keep an answer. at: when the source was asked for it, or before."""

    def late_since(self, share: Share, at: datetime, reason: str, /) -> datetime:
        """When the share was first found to be late: now, `at`, unless that is known."""


@dataclass
class SourceLister:
    """Lists one use of a source.

    Of a source that is cut by event time, one lister of a home scans at a time, whatever its
    pipeline: what the next one would read again is in the cache by then (Primus §4.2).

    ahead: windows in one scan, at most. lock_seconds: longest wait for another one's scan.
    only_look: nothing is written. storage_calls: made so far.
    """

    spec: SourceSpec
    root: Path
    ledger: Ledger
    clock: Clock
    ahead: int
    lock_seconds: float
    only_look: bool = False
    storage_calls: int = 0
    _others_max: int = field(init=False)

    def __post_init__(self) -> None:
        self._others_max = self.ahead

    def open(self) -> Source:
        """The source, with the borders of this pipeline."""
        ledger, look = self.ledger, self.only_look
        names = (ledger.pipeline, self.spec.name)
        borders = DecidedBorders(ledger.database, *names, only_look=look)
        return open_source(self.spec, self.root, borders, PlanCache(ledger.home, only_look=look))

    def look(
        self, answers: Answers, mine: Sequence[Share], others: Sequence[Share] = ()
    ) -> Late | None:
        """List `mine`, and with them others that are over and complete; or the first that is late.

        Raises:
            NotReadyError: when one of mine has been late for too long, and the policy is `fail`.
            DataError: when the storage holds something of mine that cannot be planned.
            InfrastructureError: when another lister scans for too long.
        """
        began = self.clock()
        for share in mine:
            if share.span is None and not answers.has(share):
                answers.keep(share, nothing_in(share), began, ScanFacts())
        mine = [share for share in mine if share.span is not None and not answers.has(share)]
        if not mine:
            return None
        with self.alone(), closing(self.open()) as source:
            complete = self._complete(source, answers, mine, began)
            if isinstance(complete, Late):
                return complete
            if complete:
                self._list(source, answers, complete, others)
        return None

    def _complete(
        self, source: Source, answers: Answers, mine: Sequence[Share], began: datetime
    ) -> list[Share] | Late:
        """Those that are to be listed, or the first that is late and waited for."""
        complete = list[Share]()
        for share in mine:
            if share.span is None or answers.has(share):  # another has listed it meanwhile
                continue
            found = source.readiness(share.span)
            if found.ready:
                complete.append(share)
                continue
            if found.not_before is not None:
                return Late(share, found.reason, found.not_before, is_over=False)
            since = answers.late_since(share, began, found.reason)
            if self.clock() < since + self.spec.ready.wait:
                return Late(share, found.reason, since, is_over=True)
            if self.spec.ready.late == "fail":
                raise too_late(share.source, self.spec.ready.wait, share.window.key, found.reason)
            answers.keep(share, left_out(share, found.reason), began, ScanFacts())
        return complete

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Held while the source is looked at.

        Raises:
            InfrastructureError: when another lister of a stream holds it for too long.
        """
        if self.only_look:
            yield
            return
        bounded = kind_named(self.spec.kind).bounded
        name = f"{self.ledger.pipeline}-{self.spec.name}"  # its borders are the pipeline's own
        if bounded:
            place = f"{self.root}\n{declaration_of(self.spec)}"
            name = hashlib.sha256(place.encode()).hexdigest()[:32]
        seconds = min(self.lock_seconds, SHARED_SECONDS) if bounded else self.lock_seconds
        with ExitStack() as held:
            try:
                held.enter_context(self.ledger.database.exclusive(f"scan-{name}", seconds))
            except InfrastructureError as error:
                if not bounded:
                    raise InfrastructureError(
                        f"source {self.spec.name!r}: another process lists it for pipeline "
                        f"{self.ledger.pipeline!r} for longer than {seconds:g} s ({error})"
                    ) from error
                _LOG.info("source %s is scanned twice at a time: %s", self.spec.name, error)
            yield

    def _list(
        self,
        source: SourcePlanner,
        answers: Answers,
        mine: Sequence[Share],
        others: Sequence[Share],
    ) -> None:
        now, room = self.clock(), min(self._others_max, max(0, self.ahead - len(mine)))
        over = [
            each
            for each in others
            if each.window.end <= now and each.span is not None and not answers.has(each)
        ]
        chosen = complete_among(source, over)[:room] if room else []
        try:
            self._scan(source, answers, [*mine, *chosen])
        except DataError:
            # Bad data of another window is reported by its own look, and stops no other.
            self._others_max = 0
            if not chosen:
                raise
            self._scan(source, answers, mine)
        self._others_max = min(2 * self._others_max + 1, self.ahead)

    def _scan(self, source: SourcePlanner, answers: Answers, shares: Sequence[Share]) -> None:
        ordered = sorted(shares, key=lambda each: each.window)
        began = self.clock()
        found, calls = scan_shares(source, ordered)
        self.storage_calls += calls
        facts = ScanFacts(calls, len(ordered))
        for each in ordered:
            answers.keep(each, found[each.window.key], began, facts)
