"""What a backfill will cost, estimated before anything is recorded or trained.

The storage is scanned exactly as planning scans it, so the rows by source and the number of calls
are those that planning will find. Windows that planning will not rescan come from the ledger.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from forebay.config.source_uses import source_of
from forebay.config.windows import Window
from forebay.datatasks.border_rows import DecidedBorders
from forebay.datatasks.changes import changes_since
from forebay.datatasks.operations import (
    Clock,
    SourceOperation,
    fingerprint_of,
    shares_of,
)
from forebay.datatasks.plans import SourcePlan, WindowPlan
from forebay.datatasks.sources.common.plan_cache import PlanCache
from forebay.datatasks.why import why_not_planned
from forebay.errors import ConfigError, NotReadyError
from forebay.executors.model_line.start import gap_before, require_compatible, warm_start_of
from forebay.executors.projected_chain import ProjectedChain
from forebay.executors.stages.target import LineTarget
from forebay.executors.training_pace import Pace, pace_of
from forebay.system.message import Message

State = Literal["trained", "planned", "new"]
Does = Literal["skip", "train", "train again", "wait"]
_AT_ONCE = timedelta()


class WindowCost(Message):
    """One window of the range.

    state: its state now. does: what the backfill does with it. generation: the one that it will
    have. rows: by source; None where only reading can count. reason: why it waits.
    """

    window: str
    state: State
    does: Does
    generation: int
    rows: dict[str, int | None]
    reason: str = ""

    @property
    def trains(self) -> bool:
        """Whether rows are read and trained."""
        return self.does in {"train", "train again"}


class BackfillCost(Message):
    """What a backfill of a range will do.

    rows: by source, over the windows that will be trained; None where only reading can count.
    storage_calls: how many planning these windows together takes, and this estimate took.
    stale: windows whose models are not built on the newest ones afterwards. changed: trained ones
    that are left as they are although their data has changed. refused: why part of it will fail.
    planning_seconds: what this estimate took, which plans as a backfill does.
    seconds: of one job that trains all of it, estimated from `pace`; None where only reading can
    count its rows and nothing was trained before.
    """

    pipeline: str
    line: str
    windows: list[WindowCost]
    rows: dict[str, int | None]
    storage_calls: int
    stale: list[str]
    changed: list[str]
    refused: list[str]
    planning_seconds: float
    seconds: float | None
    pace: Pace

    def named(self, *does: Does) -> list[str]:
        """Keys of the windows with which the backfill does one of these things."""
        return [each.window for each in self.windows if each.does in does]


@dataclass
class BackfillEstimator:
    """Reads ledger, model chain and storage of one line; writes nothing."""

    target: LineTarget
    clock: Clock

    def __post_init__(self) -> None:
        """Nothing is read yet."""
        self._ledger = self.target.ledger
        self._chain = self.target.chain
        self._windows: dict[str, Window] = {}

    def backfill(self, windows: Sequence[Window], *, reprocess: bool) -> BackfillCost:
        """What `forebay run` and a backfill in Airflow do with these windows.

        Raises:
            DataError: when stored data cannot be planned.
            InfrastructureError: when a source does not answer.
        """
        started = time.perf_counter()
        again = {window.key for window in windows} if reprocess else set()
        warm = warm_start_of(self.target.pipeline, self._chain, windows[0])
        requested = sorted([*([warm] if warm else []), *windows])
        self._windows = {window.key: window for window in requested}
        done = self._ledger.trained_plans(
            window.key for window in requested if window.key not in again
        )
        scan = _Scan(self.target, self.clock)
        scan.run([window for window in requested if window.key not in done])
        found = [
            self._known(done[window.key])
            if window.key in done
            else self._scanned(scan, window.key, again=window.key in again)
            for window in requested
        ]
        return self._cost(found, scan.storage_calls, time.perf_counter() - started)

    def _known(self, plan: WindowPlan) -> WindowCost:
        """A trained window: nothing happens."""
        return WindowCost(
            window=plan.window,
            state="trained",
            does="skip",
            generation=plan.generation,
            rows={name: source.rows for name, source in plan.sources.items()},
        )

    def _scanned(self, scan: _Scan, window: str, *, again: bool) -> WindowCost:
        newest, _, generation = self._ledger.state(window)
        reason = scan.late.get(window, "")
        sources = scan.plans[window]
        fingerprint = fingerprint_of(sources)
        if newest is not None and not again and newest.fingerprint == fingerprint:
            generation = newest.generation
        trained = self._chain.newest(window) is not None
        does: Does = "train again" if trained else "train"
        if reason:
            does = "wait"
        elif self._chain.is_trained(window, generation):
            does = "skip"
        state: State = "planned" if newest is not None else "new"
        return WindowCost(
            window=window,
            state="trained" if trained else state,
            does=does,
            generation=generation,
            rows={name: source.rows for name, source in sources.items()},
            reason=reason,
        )

    def _cost(
        self, found: list[WindowCost], storage_calls: int, planning_seconds: float
    ) -> BackfillCost:
        trained = [each for each in found if each.trains]
        left = {each.window: each.generation for each in found if each.does == "skip"}
        projected = ProjectedChain(self._chain)
        for each in trained:
            projected.train(self._windows[each.window], each.generation)
        pipeline = self.target.pipeline
        rows = {name: _total(trained, name) for name in pipeline.use_names}
        pace = pace_of(self._chain)
        return BackfillCost(
            pipeline=pipeline.name,
            line=self.target.line,
            windows=found,
            rows=rows,
            storage_calls=storage_calls,
            stale=projected.stale(),
            changed=self._changed(left),
            refused=self._refused(found, projected),
            planning_seconds=planning_seconds,
            seconds=pace.seconds([each.rows for each in trained]),
            pace=pace,
        )

    def _changed(self, left: Mapping[str, int]) -> list[str]:
        """Windows that are left as they are although their data has changed."""
        plans = list(self._ledger.plans(left).values())
        project, ledger = self.target.project, self._ledger
        found = ledger.data_changed(left).keys() | changes_since(
            project.root, self.target.pipeline, project.sources, ledger, plans
        )
        return [window for window in left if window in found]

    def _refused(self, found: Sequence[WindowCost], projected: ProjectedChain) -> list[str]:
        pipeline = self.target.pipeline
        trained = [each.window for each in found if each.trains]
        if not trained:
            return []
        refused = []
        try:
            require_compatible(self._chain, pipeline, self.target.project.sources)
        except ConfigError as error:
            refused.append(str(error))
        gap = gap_before(self._chain, pipeline.dataset.grid, self._windows[trained[0]])
        last = max(place for place, each in enumerate(found) if each.trains)
        waiting = [each.window for each in found[:last] if each.does == "wait"]
        refused += [gap] if gap else []
        refused += [f"windows after {key} wait until it is trained" for key in waiting[:1]]
        return refused + projected.not_kept()


class _Scan:
    """One scan of every source over the windows whose data is complete; nothing is recorded."""

    def __init__(self, target: LineTarget, clock: Clock) -> None:
        self.plans: dict[str, dict[str, SourcePlan]] = {}
        self.late: dict[str, str] = {}
        self.storage_calls = 0
        self._target = target
        self._clock = clock

    def run(self, windows: Sequence[Window]) -> None:
        project, pipeline = self._target.project, self._target.pipeline
        now = self._clock()
        self.plans = {window.key: {} for window in windows}
        over = [window for window in windows if window.end <= now]
        late = {window.key for window in windows} - {window.key for window in over}
        for name, shares in shares_of(pipeline, project.sources, over).items():
            spec = project.sources[source_of(name)]
            ready = spec.ready.model_copy(update={"wait": _AT_ONCE, "late": "fail"})
            operation = SourceOperation(
                use=name,
                spec=spec.model_copy(update={"ready": ready}),
                root=project.root,
                shares=shares,
                clock=self._clock,
                ahead=pipeline.dataset.plan_ahead_windows,
                sleeps=False,
                borders=DecidedBorders(
                    self._target.ledger.database, pipeline.name, spec.name, only_look=True
                ),
                cache=PlanCache(self._target.home, only_look=True),
            )
            late |= {window.key for window in over if not self._list(operation, window.key)}
            self.storage_calls += operation.storage_calls
        self.late = {window.key: self._why(window) for window in windows if window.key in late}

    def _list(self, operation: SourceOperation, window: str) -> bool:
        try:
            found = operation.list_window(window)
        except NotReadyError:
            return False
        self.plans[window][operation.use] = found.plan
        return True

    def _why(self, window: Window) -> str:
        why = why_not_planned(
            self._target.project.root,
            self._target.pipeline,
            self._target.project.sources,
            self._target.ledger,
            window,
            self._clock,
        )
        return f"{why.reason}; {why.next}"


def _total(windows: Sequence[WindowCost], source: str) -> int | None:
    rows = [each.rows[source] for each in windows]
    known = [count for count in rows if count is not None]
    return sum(known) if len(known) == len(rows) else None
