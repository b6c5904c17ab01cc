"""The source stage: one source's data tasks for one window, found in a scan that many may share.

Every call is a separate process. What one call finds for other waiting windows is stored in
`Listings`, so that the windows of a backfill are planned with one scan of each source.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from forebay.config.specs.datasets import source_of
from forebay.config.specs.windows import Window, is_warm_start, order_of
from forebay.datatasks.planning.border_rows import DecidedBorders
from forebay.datatasks.planning.listings import Listings
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.planning.operations import (
    Clock,
    Listed,
    Share,
    complete_among,
    identity_of,
    left_out,
    not_complete,
    not_over,
    nothing_in,
    scan_shares,
    shares_of,
    too_late,
)
from forebay.datatasks.plans.listing_rows import ListingHead
from forebay.datatasks.sources.common.contract.base import Readiness, SourcePlanner
from forebay.datatasks.sources.common.contract.plan_cache import PlanCache
from forebay.datatasks.window_range import parse_window
from forebay.errors import ConfigError, DataError, ForebayError, InfrastructureError
from forebay.executors.model_line.start import warm_start_of
from forebay.executors.stages.results import RequestedWindow, SourceResult
from forebay.executors.stages.target import StageTarget


@dataclass(frozen=True)
class _Wanted:
    """A share that a pass waits for. mine: for the window that this call is about."""

    share: Share
    asked_by: str
    mine: bool


class SourceStage:
    """One source of one window, called in a pass of the window's run.

    Args of every call:
        asked_by: the pass: the run's id and clear number.
        waiting: other windows whose runs wait for a plan now, each with its own pass.
    """

    def __init__(
        self, target: StageTarget, source: str, clock: Clock, since: datetime | None = None
    ) -> None:
        """Nothing is opened yet.

        source: the name of a use of it.
        since: a time at which the run already existed. A scheduler may delete a run and create
            another one of the same name: whatever is older than this belongs to the deleted run.

        Raises:
            ConfigError: when the pipeline does not read the source.
        """
        pipeline = target.pipeline
        if source not in pipeline.use_names:
            names = ", ".join(pipeline.use_names)
            raise ConfigError(f"pipeline {pipeline.name!r} reads no source {source!r}: {names}")
        self._target = target
        self._window = target.window
        self._use = source
        self._spec = target.project.sources[source_of(source)]
        self._clock = clock
        self._since = since
        self._ledger = target.ledger
        self._listings = Listings(self._ledger)

    def list_window(self, asked_by: str, waiting: Sequence[RequestedWindow] = ()) -> SourceResult:
        """The window's tasks for this pass: listed before, listed by a scan now, or not ready yet.

        The scan also covers waiting windows that are over, complete and not listed for their own
        pass.

        Raises:
            NotReadyError: when the source is late and its policy is `fail`.
            DataError: when the storage holds something that cannot be planned.
        """
        began, wanted = self._clock(), self._wanted(asked_by, waiting)
        known = self._known(wanted, began)
        if known is not None:
            return known
        wait_seconds = self._target.pipeline.schedule.plan_timeout.total_seconds()
        try:
            with self._listings.looking_at(self._use, wait_seconds):
                return self._list_now(wanted, began)
        except ForebayError as error:
            self._ledger.note(
                self._window.key,
                "not planned",
                reason=str(error),
                operation=f"source {self._window.key} {self._use}",
                error=type(error).__name__,
            )
            raise

    def is_ready(self, asked_by: str, waiting: Sequence[RequestedWindow] = ()) -> SourceResult:
        """Whether the data is complete (`listed`) or not (`waiting`); nothing is scanned."""
        wanted = self._wanted(asked_by, waiting)
        known = self._known(wanted, self._clock())
        if known is not None:
            return known
        key = self._window.key
        with closing(open_source(self._spec, self._target.project.root)) as source:
            for each in self._mine(wanted):
                ready = _readiness(source, each)
                if not ready.ready:
                    first = self._listings.first_asked(self._use, key).get(asked_by)
                    if first is not None and self._is_of_another_run(first):
                        first = None
                    begin = ready.not_before or first
                    return self._waiting(_incomplete_reason(each.share, ready), begin)
        return SourceResult(state="listed", window=key, source=self._use)

    def _wanted(self, asked_by: str, waiting: Sequence[RequestedWindow]) -> list[_Wanted]:
        """The shares of this call's window, and those that it may find for others, by time."""
        passes = {self._window: asked_by}
        for each in waiting:
            other = self._other(each.window)
            if other is not None and other != self._window:
                passes[other] = each.asked_by
        earliest = min(passes)
        mine = {self._window}
        warm = self._warm_start(earliest)
        if warm is not None:
            passes[warm] = passes[earliest]
            mine |= {warm} if earliest == self._window else set()
        shares = shares_of(self._target.pipeline, self._target.project.sources, sorted(passes))
        return [
            _Wanted(share, passes[share.window], mine=share.window in mine)
            for share in shares[self._use]
        ]

    def _other(self, key: str) -> Window | None:
        """A window that another run waits for; None when the pipeline no longer has it."""
        try:
            return parse_window(self._target.pipeline, key)
        except ConfigError:
            return None  # its own run reports it

    def _warm_start(self, begin: Window) -> Window | None:
        """The warm start to list with the earliest window, if the line seems to begin there."""
        if self._target.pipeline.train.warm_start is None:
            return None
        listed = [self._other(key) for key in self._listings.windows()]
        planned = self._ledger.windows(before=begin)
        if any(each is not None and order_of(each) < order_of(begin) for each in listed) or any(
            not is_warm_start(key) for key in planned
        ):
            return None
        warm = warm_start_of(self._target.pipeline, self._target.chain, begin)
        if warm is None or warm.end > begin.start or self._ledger.trained(warm.key) is not None:
            return None
        return warm

    def _known(self, wanted: Sequence[_Wanted], now: datetime) -> SourceResult | None:
        """The answer where the source need not be asked: all is listed, or the window goes on."""
        head = self._listings.head(self._use, self._window.key)
        if head is not None and not self._mine(wanted):
            return self._result(head, storage_calls=0)
        if now < self._window.end:
            return self._waiting(not_over(self._window, now), self._window.end)
        return None

    def _mine(self, wanted: Sequence[_Wanted]) -> list[_Wanted]:
        return [each for each in wanted if each.mine and not self._is_listed(each)]

    def _is_listed(self, wanted: _Wanted) -> bool:
        head = self._listings.head(self._use, wanted.share.window.key)
        return (
            head is not None
            and head.asked_by == wanted.asked_by
            and not (wanted.mine and self._is_of_another_run(head.listed_at))
            and identity_of(head.plan) == identity_of(wanted.share.plan())
        )

    def _is_of_another_run(self, at: datetime) -> bool:
        return self._since is not None and at < self._since

    def _list_now(self, wanted: Sequence[_Wanted], began: datetime) -> SourceResult:
        """With the source's lock held, list what nobody else has listed meanwhile."""
        key, complete = self._window.key, []
        borders = DecidedBorders(self._ledger.database, self._target.pipeline.name, self._spec.name)
        root, cache = self._target.project.root, PlanCache(self._target.home)
        with closing(open_source(self._spec, root, borders, cache)) as source:
            for each in self._mine(wanted):
                ready = _readiness(source, each)
                if ready.ready:
                    complete.append(each)
                    continue
                if ready.not_before is not None:
                    reason = _incomplete_reason(each.share, ready)
                    return self._waiting(reason, ready.not_before)
                first, is_new = self._listings.ask(
                    self._use, key, each.asked_by, began, self._since
                )
                if self._clock() < first + self._spec.ready.wait:
                    if is_new:
                        facts = {"source": self._use, "reason": ready.reason}
                        self._ledger.note(key, "waiting", **facts)
                    return self._waiting(_incomplete_reason(each.share, ready), first)
                if self._spec.ready.late == "fail":
                    raise too_late(
                        self._use, self._spec.ready.wait, each.share.window.key, ready.reason
                    )
                self._store(each, left_out(each.share, ready.reason), began)
            calls = self._list(source, complete, wanted)
        head = self._listings.head(self._use, key)
        if head is None:
            raise InfrastructureError(f"window {key}: its listing has disappeared")
        return self._result(head, calls)

    def _list(
        self, source: SourcePlanner, mine: Sequence[_Wanted], wanted: Sequence[_Wanted]
    ) -> int:
        """List mine, and others in the same scan; returns the number of storage calls."""
        for each in mine:
            if each.share.span is None:
                self._store(each, nothing_in(each.share), self._clock())
        mine = [each for each in mine if each.share.span is not None]
        if not mine:
            return 0
        room = max(0, self._target.pipeline.dataset.plan_ahead_windows - len(mine))
        others = self._others(source, wanted)[:room]
        try:
            return self._scan(source, [*mine, *others])
        except DataError:
            if not others:
                raise
            # Bad data of another window is reported by that window's task, and stops no other.
            return self._scan(source, mine)

    def _others(self, source: SourcePlanner, wanted: Sequence[_Wanted]) -> list[_Wanted]:
        now = self._clock()
        over = {
            each.share.window: each
            for each in wanted
            if not each.mine
            and each.share.window.end <= now
            and each.share.span is not None
            and not self._is_listed(each)
        }
        shares = complete_among(source, [each.share for each in over.values()])
        return [over[share.window] for share in shares]

    def _scan(self, source: SourcePlanner, wanted: Sequence[_Wanted]) -> int:
        ordered = sorted(wanted, key=lambda each: each.share.window)
        began = self._clock()
        found, calls = scan_shares(source, [each.share for each in ordered])
        counts = {"storage_calls": calls, "windows_scanned": len(ordered)}
        for each in ordered:
            self._store(each, found[each.share.window.key], began, **counts)
        return calls

    def _store(self, wanted: _Wanted, listed: Listed, at: datetime, **counts: int) -> None:
        """Store an answer. at: when the source was asked for it, or later."""
        key = wanted.share.window.key
        self._listings.store(key, listed, asked_by=wanted.asked_by, at=at, **counts)

    def _waiting(self, reason: str, first: datetime | None = None) -> SourceResult:
        return SourceResult(
            state="waiting",
            window=self._window.key,
            source=self._use,
            reason=reason,
            deadline=None if first is None else first + self._spec.ready.wait,
        )

    def _result(self, head: ListingHead, storage_calls: int) -> SourceResult:
        return SourceResult(
            state="listed",
            window=self._window.key,
            source=self._use,
            reason=head.plan.reason,
            rows=head.plan.rows,
            tasks=head.plan.tasks,
            files=head.plan.files,
            storage_calls=storage_calls,
            windows_scanned=head.windows_scanned,
            fingerprint=head.plan.fingerprint,
        )


def _readiness(source: SourcePlanner, wanted: _Wanted) -> Readiness:
    """Whether a share is complete; a window outside the source's time range always is."""
    span = wanted.share.span
    return Readiness(ready=True) if span is None else source.readiness(span)


def _incomplete_reason(share: Share, ready: Readiness) -> str:
    return not_complete(share.source, share.span or share.whole, ready.reason)
