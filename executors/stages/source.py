"""The source stage: one source's data tasks for one window, found in a scan that many may share.

Every call is a separate process. What one call finds for other waiting windows is stored in
`Listings`, so that the windows of a backfill are planned with one scan of each source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime

from forebay.config.specs.datasets import source_of
from forebay.config.specs.windows import Window, is_warm_start, order_of
from forebay.datatasks.planning.lister import Answers, ScanFacts, SourceLister
from forebay.datatasks.planning.listings import Listings
from forebay.datatasks.planning.operations import (
    Clock,
    Listed,
    Share,
    declaration_of,
    identity_of,
    not_complete,
    not_over,
    shares_of,
)
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.listing_rows import ListingHead
from forebay.datatasks.window_range import parse_window
from forebay.errors import ConfigError, ForebayError, InfrastructureError
from forebay.executors.model_line.start import warm_start_of
from forebay.executors.stages.results import RequestedWindow, SourceResult
from forebay.executors.stages.target import StageTarget


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
        self._ledger = target.ledger
        declared = declaration_of(self._spec)
        self._answers = _StoredAnswers(self._ledger, source, declared, self._window, since)
        self._lister = SourceLister(
            self._spec,
            target.project.root,
            self._ledger,
            clock,
            pipeline.dataset.plan_ahead_windows,
            pipeline.schedule.plan_timeout.total_seconds(),
        )

    def list_window(self, asked_by: str, waiting: Sequence[RequestedWindow] = ()) -> SourceResult:
        """The window's tasks for this pass: listed before, listed by a scan now, or not ready yet.

        The scan also covers waiting windows that are over, complete and not listed for their own
        pass.

        Raises:
            NotReadyError: when the source is late and its policy is `fail`.
            DataError: when the storage holds something that cannot be planned.
        """
        mine, others = self._wanted(asked_by, waiting)
        known = self._known(mine)
        if known is not None:
            return known
        key = self._window.key
        try:
            late = self._lister.look(self._answers, mine, others)
        except ForebayError as error:
            self._ledger.note(
                key,
                "not planned",
                reason=str(error),
                operation=f"source {key} {self._use}",
                error=type(error).__name__,
            )
            raise
        if late is not None:
            return self._waiting(_incomplete_reason(late.share, late.reason), late.since)
        head = self._answers.head(key)
        if head is None:
            raise InfrastructureError(f"window {key}: its listing has disappeared")
        return self._result(head, self._lister.storage_calls)

    def is_ready(self, asked_by: str, waiting: Sequence[RequestedWindow] = ()) -> SourceResult:
        """Whether the data is complete (`listed`) or not (`waiting`); nothing is scanned."""
        mine, _ = self._wanted(asked_by, waiting)
        known = self._known(mine)
        if known is not None:
            return known
        with closing(self._lister.open()) as source:
            for share in mine:
                if share.span is None or self._answers.has(share):
                    continue
                ready = source.readiness(share.span)
                if not ready.ready:
                    begin = ready.not_before or self._answers.first_asked(asked_by)
                    return self._waiting(_incomplete_reason(share, ready.reason), begin)
        return SourceResult(state="listed", window=self._window.key, source=self._use)

    def _wanted(
        self, asked_by: str, waiting: Sequence[RequestedWindow]
    ) -> tuple[list[Share], list[Share]]:
        """Shares of this call's window, with a warm start, and those it may list for others."""
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
        self._answers.passes, self._answers.mine = passes, mine
        shares = shares_of(self._target.pipeline, self._target.project.sources, sorted(passes))
        found: tuple[list[Share], list[Share]] = ([], [])
        for share in shares[self._use]:
            found[share.window not in mine].append(share)
        return found

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
        listed = [self._other(key) for key in self._answers.listings.windows()]
        planned = self._ledger.windows(before=begin)
        if any(each is not None and order_of(each) < order_of(begin) for each in listed) or any(
            not is_warm_start(key) for key in planned
        ):
            return None
        warm = warm_start_of(self._target.pipeline, self._target.chain, begin)
        if warm is None or warm.end > begin.start or self._ledger.trained(warm.key) is not None:
            return None
        return warm

    def _known(self, mine: Sequence[Share]) -> SourceResult | None:
        """The answer where the source need not be asked: all is listed, or the window goes on."""
        head = self._answers.head(self._window.key)
        if head is not None and all(self._answers.has(each) for each in mine):
            return self._result(head, storage_calls=0)
        if self._clock() < self._window.end:
            reason = not_over(self._window, self._clock())
            return self._waiting(reason, self._window.end)
        return None

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


def _incomplete_reason(share: Share, reason: str) -> str:
    return not_complete(share.source, share.span or share.whole, reason)


@dataclass
class _StoredAnswers(Answers):
    """Answers in the database. What was found for one pass is no answer to another.

    What another declaration found is none either, whoever asked. declared: see `declaration_of`.
    since: see `SourceStage`. passes: what lists are made for, by window. mine: windows of this run.
    """

    ledger: Ledger
    use: str
    declared: str
    window: Window
    since: datetime | None
    passes: Mapping[Window, str] = field(default_factory=dict)
    mine: AbstractSet[Window] = frozenset()

    @property
    def listings(self) -> Listings:
        return Listings(self.ledger)

    def head(self, key: str) -> ListingHead | None:
        return self.listings.head(self.use, key)

    def has(self, share: Share) -> bool:
        head = self.head(share.window.key)
        return (
            head is not None
            and head.asked_by == self.passes[share.window]
            and not (share.window in self.mine and self._is_of_another_run(head.listed_at))
            and head.declared == self.declared
            and identity_of(head.plan) == identity_of(share.plan())
        )

    def keep(self, share: Share, listed: Listed, at: datetime, scan: ScanFacts) -> None:
        asked_by = self.passes[share.window]
        self.listings.store(
            share.window.key,
            listed,
            declared=self.declared,
            asked_by=asked_by,
            at=at,
            storage_calls=scan.storage_calls,
            windows_scanned=scan.windows,
        )

    def late_since(self, share: Share, at: datetime, reason: str) -> datetime:
        key, asked_by = self.window.key, self.passes[share.window]
        first, is_new = self.listings.ask(self.use, key, asked_by, at, self.since)
        if is_new:
            self.ledger.note(key, "waiting", source=self.use, reason=reason)
        return first

    def first_asked(self, asked_by: str) -> datetime | None:
        """When a pass of this run first found it late; None when it has not."""
        first = self.listings.first_asked(self.use, self.window.key).get(asked_by)
        return None if first is None or self._is_of_another_run(first) else first

    def _is_of_another_run(self, at: datetime) -> bool:
        return self.since is not None and at < self.since
