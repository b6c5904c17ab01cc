"""The ledger: which tasks a window has, in immutable generations.

The figures of a plan are rows, its tasks are manifests in the store. The manifests are stored
first: a generation is visible with all of it, by one transaction, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

import pyarrow as pa
from sqlalchemy import Connection

from forebay.config.specs.windows import Interval, Spanned
from forebay.datatasks.plans import history, plan_rows, slice_rows
from forebay.datatasks.plans.manifests import (
    in_task_order,
    manifest_bytes,
    read_manifests,
    tables_of,
)
from forebay.datatasks.plans.plan import WindowPlan, fewer_rows
from forebay.datatasks.plans.plan_rows import WindowState
from forebay.datatasks.plans.slice_rows import SliceRow
from forebay.datatasks.tasks import DataTask
from forebay.errors import DataError
from forebay.home.database.base import Database
from forebay.home.database.open import database_of
from forebay.home.paths import DEFAULT_LINE, Home
from forebay.home.store.base import PLANS, Store, Stored
from forebay.home.store.open import own_store, store_of

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Ledger:
    """Plans and window states of one pipeline, as a model line of it sees them.

    line: who asks for plans. What is planned for one line changes nothing for another that has
    trained the window.
    """

    def __init__(self, home: Home, pipeline: str, line: str = DEFAULT_LINE) -> None:
        self.home = home
        self.pipeline = pipeline
        self.line = line

    @property
    def store(self) -> Store:
        return store_of(self.home)

    @property
    def database(self) -> Database:
        return database_of(self.home)

    def windows(self, before: Spanned | None = None) -> list[str]:
        """Keys of windows that have a plan for the line, by their ends, then by starts."""
        return self._read(plan_rows.planned_windows, self.line, before)

    def generations(self, window: str) -> list[int]:
        """Numbers of the generations of a window, ascending."""
        return self._read(plan_rows.generations, window)

    def latest_plan(self, window: str) -> WindowPlan | None:
        """What the line has trained the window from, or is to train it from: see `plan_for`."""
        return self._read(plan_rows.plan_for, self.line, window)

    def open_windows(self, keys: Iterable[str]) -> list[str]:
        """Those of these windows whose newest plan is open."""
        return self.database.read(lambda rows: slice_rows.open_windows(rows, self.pipeline, keys))

    def state(self, window: str) -> WindowState:
        return self._read(plan_rows.state_of, self.line, window)

    def trained_plans(self, windows: Iterable[str]) -> dict[str, WindowPlan]:
        """The plans that the line has trained windows from, unless it asked for another since."""
        return self._read(plan_rows.trained_plans, self.line, list(windows))

    def plan(self, window: str, generation: int) -> WindowPlan:
        """One generation.

        Raises:
            DataError: when it is not there.
        """
        return self._all_of({window: generation}, self.plans({window: generation}))[window]

    def data_changed(self, generations: Mapping[str, int]) -> dict[str, str]:
        """Windows that were planned since from other data than these generations; in words."""
        return self.database.read(lambda rows: self._changed(rows, generations))

    def trained_from(
        self, generations: Mapping[str, int]
    ) -> tuple[dict[str, WindowPlan], dict[str, str]]:
        """These generations by window, and `data_changed` of them.

        Raises:
            DataError: when one of them is not there.
        """

        def work(rows: Connection) -> tuple[dict[str, WindowPlan], dict[str, str]]:
            return (
                plan_rows.plans_of(rows, self.pipeline, generations),
                self._changed(rows, generations),
            )

        plans, changed = self.database.read(work)
        return self._all_of(generations, plans), changed

    def forgotten(self, generations: Mapping[str, int]) -> set[str]:
        """Windows whose generation, which is given, the line has forgotten: it is done again."""
        return self._read(plan_rows.forgotten_of, self.line, generations)

    def plans(self, generations: Mapping[str, int]) -> dict[str, WindowPlan]:
        """One generation of each of these windows, where it is there."""
        return self._read(plan_rows.plans_of, generations)

    def tasks(self, window: str, generation: int) -> pa.Table:
        """The tasks of all sources, ordered by (hour, source order, number).

        Raises:
            DataError: when the generation is not there, or its manifests are not as they were
                stored.
        """
        plan = self.plan(window, generation)
        if plan.is_open:
            grown = self.slices(window, generation)
            return in_task_order(tables_of(each.tasks for each in grown), plan.sources)
        stored = self._read(plan_rows.manifests_of, window, generation)
        streams = dict.fromkeys(source.stream for source in plan.sources.values())
        try:
            paths = [self.store.path(stored[stream]) for stream in streams if stream in stored]
        except DataError as error:
            raise DataError(
                f"window {window}, generation {generation}: {error}, or plan the window again "
                f"(`forebay forget {self.pipeline} {window} --line {self.line}`, then run it; in "
                "Airflow, clear its run)"
            ) from error
        return read_manifests(paths, plan.sources)

    def slices(self, window: str, generation: int) -> list[SliceRow]:
        """What an open window has grown by; nothing once it is closed."""
        return self._read(slice_rows.slices_of, window, generation)

    def add_slice(self, plan: WindowPlan, added: SliceRow, after: int | None) -> None:
        """Let an open window grow. after: see `slice_rows.add_slice`.

        Raises:
            FencedError: when it is not open any more, or another process plans it too.
        """
        names = (self.pipeline, plan.window, plan.generation)
        self.database.transact(lambda rows: slice_rows.add_slice(rows, *names, added, after))

    def close_plan(
        self,
        plan: WindowPlan,
        tables: Mapping[str, pa.Table],
        inner: Mapping[str, Iterable[datetime]],
        count: int,
    ) -> None:
        """Store what an open window has become.

        tables: as of `record_plan`. inner: borders of its slices, by source, which are dropped.
        count: of the slices that are in them.

        Raises:
            FencedError: when it is not open any more, or has grown since.
        """
        stored = self._stored(plan, tables)

        def work(rows: Connection) -> None:
            slice_rows.close_plan(rows, self.pipeline, plan, stored, count)
            if not slice_rows.is_open(rows, self.pipeline, plan.window):
                for source, instants in inner.items():
                    slice_rows.drop_borders(rows, self.pipeline, source, instants)
            history.note(rows, self.pipeline, plan.window, "closed", {"tasks": plan.tasks})

        self.database.transact(work)

    @staticmethod
    def data_task(table: pa.Table, row: int, plan: WindowPlan) -> DataTask:
        values = table.slice(row, 1).to_pylist()[0]
        source = plan.sources[values["source"]]
        span = Interval(source.data_from, source.data_to)
        return DataTask.of_row(
            values,
            values["task_id"],
            source.source,
            plan.window,
            span,
            generation=plan.generation,
            hour_base=source.hour_base,
        )

    def record_plan(
        self, plan: WindowPlan, tables: Mapping[str, pa.Table], *, proposed: bool = False
    ) -> None:
        """Store a generation as a whole.

        tables: by stream; MANIFEST_SCHEMA, or TASK_SCHEMA's columns without `span` and with
        `task_id` and `source`, in any column order. proposed: it counts only once a job that
        trains it is submitted.

        Raises:
            ConfigError: when the store is another home's.
            FencedError: when another process stored this generation in the meantime.
        """
        self.database.prepare()
        stored = self._stored(plan, tables)
        facts = {"generation": plan.generation, "fingerprint": plan.fingerprint}

        def work(rows: Connection) -> None:
            plan_rows.store_plan(rows, self.pipeline, self.line, plan, stored, proposed=proposed)
            history.note(rows, self.pipeline, plan.window, "planned", facts)

        self.database.transact(work)

    def _stored(self, plan: WindowPlan, tables: Mapping[str, pa.Table]) -> dict[str, Stored]:
        folder, stem = f"{PLANS}/{self.pipeline}/{plan.window}", f"g{plan.generation}-"
        store = own_store(self.home)
        return {
            stream: store.put(folder, stem + stream, manifest_bytes(table))
            for stream, table in tables.items()
        }

    def proposed(self, window: str) -> int | None:
        """The generation that the line's next submission of the trained window may train."""
        return self._read(plan_rows.proposed_generation, self.line, window)

    def drop_proposal(self, window: str) -> None:
        """Forget what the line proposed for a window and never submitted."""
        self.database.transact(
            lambda rows: plan_rows.drop_proposal(rows, self.pipeline, self.line, window)
        )

    def trained(self, window: str) -> int | None:
        """The newest generation that the line has trained to its end."""
        return self._read(plan_rows.trained_generation, self.line, window)

    def forget(self, window: str) -> bool:
        """Let the line plan and train a window again, and no other. False without a plan."""

        def work(rows: Connection) -> bool:
            found = plan_rows.forget(rows, self.pipeline, self.line, window)
            if found:
                history.note(rows, self.pipeline, window, "forgotten", {"line": self.line})
            return found

        return self.database.transact(work)

    def note(self, window: str, event: str, **facts: Any) -> None:
        self.database.transact(lambda rows: history.note(rows, self.pipeline, window, event, facts))

    def history(self, window: str | None = None) -> list[dict[str, Any]]:
        """What happened, the oldest first."""
        return self._read(history.entries, window)

    def _read(
        self,
        function: Callable[Concatenate[Connection, str, _P], _T],
        *args: _P.args,
        **kwargs: _P.kwargs,
    ) -> _T:
        return self.database.read(lambda rows: function(rows, self.pipeline, *args, **kwargs))

    def _changed(self, rows: Connection, generations: Mapping[str, int]) -> dict[str, str]:
        newest = plan_rows.changed_plans(rows, self.pipeline, generations)
        then = {window: generations[window] for window in newest}
        before, now = (plan_rows.plans_of(rows, self.pipeline, each) for each in (then, newest))
        found: dict[str, str] = {}
        for window, number in newest.items():
            text = (
                f"data changed (generation {number} was planned from the new data, and this model "
                f"was trained from generation {then[window]})"
            )
            found[window] = "; ".join([text, *fewer_rows(before[window].counts, now[window])])
        return found

    def _all_of(
        self, generations: Mapping[str, int], plans: dict[str, WindowPlan]
    ) -> dict[str, WindowPlan]:
        for window, generation in generations.items():
            if window not in plans:
                raise DataError(
                    f"pipeline {self.pipeline!r} has no generation {generation} of window "
                    f"{window}: it was forgotten: run the window again"
                )
        return plans
