"""Planning windows: the graph's operations on a thread pool, results recorded in window order."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from forebay.config.specs.datasets import source_of
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Window
from forebay.datatasks.planning.graph import Graph, GraphRun, Kind, Operation, window_graph
from forebay.datatasks.planning.lister import SourceLister
from forebay.datatasks.planning.operations import (
    Clock,
    Share,
    asks_for,
    identity_of,
    not_over,
    shares_of,
)
from forebay.datatasks.planning.sink import sink_window
from forebay.datatasks.planning.source_operation import SourceOperation
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.plan import SourcePlan, WindowPlan
from forebay.errors import ForebayError, NotReadyError

_THREADS = 8


@dataclass(frozen=True)
class PlanReport:
    """What planning found.

    plans: one for each window asked for, in order of time (the warm start first).
    storage_calls: listings, footers and metadata reads. reused: plans that were there already.
    notes: things that a person should know and that stop nothing.
    """

    plans: list[WindowPlan]
    storage_calls: int
    reused: int
    notes: list[str] = field(default_factory=list)


def plan_windows(
    project_root: Path,
    pipeline: PipelineSpec,
    sources: Mapping[str, SourceSpec],
    ledger: Ledger,
    windows: Sequence[Window],
    *,
    warm_start: Window | None,
    again: AbstractSet[str] = frozenset(),
    clock: Clock,
    waiting: Callable[[str], None] = lambda _text: None,
) -> PlanReport:
    """Plan windows that need it and record them.

    A trained window keeps its generation and is not looked at again, unless `again` names it (never
    the warm start: forget that one to have it again), so that a new one is proposed. A planned
    window keeps its generation while its data has the same fingerprint. `waiting` is told once for
    each source that is waited for.

    Raises:
        NotReadyError: when a window is not closed, or a source is late and may not be skipped.
        DataError: when stored data cannot be planned.
    """
    asked = sorted([*([warm_start] if warm_start else []), *windows])
    shares = shares_of(pipeline, sources, asked)
    keys = [window.key for window in asked if window.key not in again]
    done = ledger.trained_plans(keys)
    done |= _left_open(ledger, shares, [key for key in keys if key not in done])
    todo = {window.key: window for window in asked if window.key not in done}
    planner = _Planner(ledger, again, clock, todo, waiting)
    for name, found in shares.items():
        lister = SourceLister(
            sources[source_of(name)],
            project_root,
            ledger,
            clock,
            pipeline.dataset.plan_ahead_windows,
            pipeline.schedule.plan_timeout.total_seconds(),
        )
        wanted = [share for share in found if share.window.key in todo]
        planner.operations[name] = SourceOperation(
            lister, wanted, planner.waiting, stop=planner.stop
        )
    planner.run(window_graph(list(todo), list(shares)))
    plans = [planner.plans.get(window.key) or done[window.key] for window in asked]
    notes = planner.notes + _declared_notes(plans, done, shares)
    calls = sum(each.lister.storage_calls for each in planner.operations.values())
    return PlanReport(plans, calls, len(asked) - planner.recorded, notes)


def _left_open(
    ledger: Ledger, shares: Mapping[str, list[Share]], keys: Sequence[str]
) -> dict[str, WindowPlan]:
    """Windows that were opened as they are declared now: who trains them goes on with that."""
    declared = _declared(shares)
    plans = {key: ledger.latest_plan(key) for key in ledger.open_windows(keys)}
    return {
        key: plan
        for key, plan in plans.items()
        if plan is not None and plan.is_open and asks_for(plan, declared[key])
    }


def _declared(shares: Mapping[str, list[Share]]) -> dict[str, list[SourcePlan]]:
    """By window, what each use is to give to it."""
    found: dict[str, list[SourcePlan]] = {}
    for share in chain.from_iterable(shares.values()):
        found.setdefault(share.window.key, []).append(share.plan())
    return found


def _declared_notes(
    plans: Sequence[WindowPlan], done: Mapping[str, WindowPlan], shares: Mapping[str, list[Share]]
) -> list[str]:
    """Trained windows whose declaration now asks for other rows."""
    declared = _declared(shares)
    return [
        f"window {plan.window}: streams or offsets have been changed since it was trained; "
        "run with --reprocess to train it on them"
        for plan in plans
        if plan.window in done
        and list(map(identity_of, plan.sources.values()))
        != list(map(identity_of, declared[plan.window]))
    ]


@dataclass
class _Planner:
    """Runs a graph. `again` names windows that get a new generation whatever their data says.

    Sinks run in window order, so that what is recorded has no hole.
    """

    ledger: Ledger
    again: AbstractSet[str]
    clock: Clock
    windows: Mapping[str, Window]
    told: Callable[[str], None]
    operations: dict[str, SourceOperation] = field(default_factory=dict)
    plans: dict[str, WindowPlan] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    recorded: int = 0
    stop: threading.Event = field(default_factory=threading.Event)
    _log_lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, graph: Graph) -> None:
        """Run everything that can run; then raise the first error in window order."""
        run = GraphRun(graph)
        started: dict[Future[Exception | None], Operation] = {}
        failed: dict[Operation, Exception] = {}

        def finish(operation: Operation, error: Exception | None) -> None:
            run.finish(operation, failed=error is not None)
            if error is not None:
                failed[operation] = error

        with ThreadPoolExecutor(_THREADS, thread_name_prefix="plan") as pool, self._stopping():
            while True:
                while (operation := run.next()) is not None:
                    if self._is_quick(operation):
                        finish(operation, self._attempt(operation))
                    else:
                        started[pool.submit(self._attempt, operation)] = operation
                if not started:
                    break
                for future in wait(started, return_when=FIRST_COMPLETED).done:
                    finish(started.pop(future), future.result())
        if failed:
            self._raise(graph, failed)

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """After Ctrl-C no thread waits on for data that is late."""
        try:
            yield
        finally:
            self.stop.set()

    def _is_quick(self, operation: Operation) -> bool:
        """Whether an operation only computes, or writes the ledger, which takes turns anyway."""
        is_source = operation.kind is Kind.SOURCE
        return not is_source or operation.window in self.operations[operation.source].listed

    def _attempt(self, operation: Operation) -> Exception | None:
        try:
            self._act(operation)
        except Exception as error:  # noqa: BLE001 - raised by `run`, after all that can run has run
            return error
        return None

    def waiting(self, window: str, source: str, reason: str) -> None:
        """Write down that a source is waited for, so that `why` can tell."""
        with self._log_lock:
            self.ledger.note(window, "waiting", source=source, reason=reason)
            self.told(f"window {window} waits for source {source}: {reason}")

    def _act(self, operation: Operation) -> None:
        if operation.kind is Kind.TIMER:
            window, now = self.windows[operation.window], self.clock()
            if now < window.end:
                raise NotReadyError(not_over(window, now))
        elif operation.kind is Kind.SOURCE:
            self.operations[operation.source].list_window(operation.window)
        elif operation.kind is Kind.SINK:
            window = self.windows[operation.window]
            listed = [each.listed[window.key] for each in self.operations.values()]
            sunk = sink_window(self.ledger, window, listed, again=window.key in self.again)
            self.plans[window.key] = sunk.plan
            self.recorded += sunk.recorded
            self.notes += [sunk.note] if sunk.note else []
        # The joiner has nothing to do: being reached says that all sources are listed.

    def _raise(self, graph: Graph, failed: Mapping[Operation, Exception]) -> None:
        first = next(operation for operation in graph if operation in failed)
        for operation, error in failed.items():
            if isinstance(error, ForebayError):
                reason = {"operation": str(operation), "error": type(error).__name__}
                self.ledger.note(operation.window, "not planned", reason=str(error), **reason)
        raise failed[first]
