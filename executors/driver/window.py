"""One window as the driver serves it: the ledger's tasks, their leases, counts by source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from forebay.config.specs.jobs import JobSpec
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.task_runs import Run
from forebay.datatasks.tasks import DataTask, Position, TaskProgress
from forebay.errors import InfrastructureError
from forebay.executors.driver.hazards import Hazards
from forebay.executors.driver.leases import FAR, LeaseTable, TaskState
from forebay.executors.wire.messages import Grant, Progress

_NO_IDS = pa.nulls(0, pa.string())
# How many tasks of a source are read at a time while a window grows: as many partitions of a slice.
_GROWING_READERS = 8


class ServedWindow:
    """Tasks of one (window, generation). Guarded by the driver's lock."""

    def __init__(
        self,
        ledger: Ledger,
        window: str,
        generation: int,
        source_names: Sequence[str],
        job: JobSpec,
        hazards: Hazards,
    ) -> None:
        """Read the plan; nothing is leased.

        Raises:
            ForebayError: when the ledger does not hold a complete plan.
        """
        self.window = window
        self.generation = generation
        self._names = source_names
        self._ledger = ledger
        self._hazards = hazards
        self.plan = ledger.plan(window, generation)
        self.is_open = self.plan.is_open
        self._table: pa.Table = ledger.tasks(window, generation)
        self._ids = _ids_of(self._table)
        self._rows: dict[str, int] = {}
        self.rows_used: Counter[str] = Counter()
        self.leases = LeaseTable(
            self._table["hour"].to_numpy(),
            self._sources(self._table),
            len(source_names),
            [_GROWING_READERS] * len(source_names) if self.is_open else self._partitions(),
            align_hours=job.buffers.align_hours,
            attempts_max=job.failover.task_attempts_max,
            horizon=-1 if self.is_open else None,
        )

    @property
    def tasks(self) -> int | None:
        """How many there are; None while the window grows."""
        return None if self.is_open else len(self._table)

    @property
    def horizon(self) -> int | None:
        """Up to which slice rows are served, of a window that was open when it was begun."""
        return self.leases.horizon

    @property
    def has_all(self) -> bool:
        """Whether an executor reads each task, and none is to come."""
        return not self.is_open and not self.leases.count(TaskState.PENDING)

    @property
    def is_sealed(self) -> bool:
        return not self.is_open and self.leases.is_sealed

    def grow(self, tasks: pa.Table) -> None:
        """Take tasks that are not here yet."""
        known = pc.is_in(tasks["task_id"], value_set=self._ids)
        fresh = tasks.filter(pc.invert(known)).combine_chunks()
        self._table = pa.concat_tables([self._table, fresh]).combine_chunks()
        self._ids = _ids_of(self._table)
        self.leases.append(fresh["hour"].to_numpy(), self._sources(fresh))

    def close(self) -> None:
        """No further tasks come."""
        self.is_open, self.leases.horizon = False, FAR

    def restore(self, positions: Progress) -> None:
        for run, progress in _runs_of(positions):
            self.leases.end(self._rows_of_run(run), sealed=False)
            self.rows_used[run.source] += progress.rows_read
        by_row = self._by_row(positions)
        self.leases.restore(by_row)
        for row, progress in by_row.items():
            self._count(row, None, progress)

    def lease(self, epoch: int, executors: int) -> list[Grant]:
        return [self._grant(row) for row in self.leases.lease(epoch, executors)]

    def use(self, positions: Progress) -> None:
        for row, progress in self._by_row(positions).items():
            before = self.leases.use(row, progress)
            self._count(row, before, self.leases.progress[row])

    def fenced(self, epoch: int, taken: Progress) -> None:
        self.leases.fenced(epoch, self._by_row(taken))

    def seal(self, positions: Progress) -> None:
        self.use(positions)
        for run, _ in _runs_of(positions):
            self.leases.end(self._rows_of_run(run), sealed=True)
        self.leases.seal(self._by_row(positions))

    def advance(self, epoch: int, hours: Mapping[str, int]) -> None:
        for row, hour in zip(self._rows_of(list(hours)), hours.values(), strict=True):
            self.leases.advance(epoch, row, hour)

    def read(self, epoch: int, task_ids: Iterable[str]) -> None:
        for row in self._rows_of(list(task_ids)):
            self.leases.read(epoch, row)

    def row_of(self, task_id: str) -> int:
        return self._rows_of([task_id])[0]

    @property
    def readers(self) -> dict[str, int]:
        """By source, the most tasks that one executor reads at a time."""
        return dict(zip(self._names, self.leases.reading_max, strict=True))

    @property
    def pending(self) -> dict[str, int]:
        """By source, the hour of its earliest task that no executor reads."""
        return {self._names[n]: hour for n, hour in self.leases.pending_hours().items()}

    def counts(self) -> dict[str, int]:
        return {state.name.lower(): self.leases.count(state) for state in TaskState}

    def data_tasks(self, source: str, positions: Progress) -> dict[str, tuple[DataTask, Position]]:
        """For each partition of a source that has positions: its first task that has not ended.

        With the first row of it that is not sealed; the last task, at its end, where all have. Some
        partitions are read by several at once: later tasks may have ended.
        """
        known = {name: at for name, at in positions.items() if name.rpartition("/")[0] == source}
        rows = np.flatnonzero(self.leases.sources == self._names.index(source))
        ended = np.zeros(len(self._table), np.bool_)
        at = self._by_row(known)
        ended[[row for row, each in at.items() if each.ended]] = True
        for run, _ in _runs_of(known):
            ended[self._rows_of_run(run)] = True
        begun = {*at, *np.flatnonzero(ended).tolist()}
        found: dict[str, tuple[DataTask, Position]] = {}
        partitions = self._table["partition"].take(pa.array(rows)).to_numpy(zero_copy_only=False)
        for partition in np.unique(partitions):
            mine = rows[partitions == partition]
            left = mine[~ended[mine]]
            if begun.isdisjoint(mine.tolist()):
                continue
            task = self._task(int(left[0] if len(left) else mine[-1]))
            first = Position(task.ranges[0].first, 0)
            if not len(left):
                first = Position(task.ranges[-1].end, 0)
            elif int(left[0]) in at:
                first = at[int(left[0])].position
            found[task.task_id] = task, first
        return found

    def _sources(self, tasks: pa.Table) -> npt.NDArray[np.int32]:
        found = pc.index_in(tasks["source"], value_set=pa.array(self._names, pa.string()))
        if found.null_count:
            raise InfrastructureError(
                f"the plan of {self.window} names a source of another pipeline"
            )
        places: npt.NDArray[np.int32] = found.to_numpy().astype(np.int32)
        return places

    def _partitions(self) -> list[int]:
        counted = self._table.group_by("source").aggregate([("partition", "count_distinct")])
        columns = (counted["source"], counted["partition_count_distinct"])
        counts = dict(zip(*(column.to_pylist() for column in columns), strict=True))
        return [counts.get(name, 1) for name in self._names]

    def _task(self, row: int) -> DataTask:
        return self._ledger.data_task(self._table, row, self.plan)

    def _grant(self, row: int) -> Grant:
        task = self._task(row)
        return Grant(
            task=task,
            attempt=int(self.leases.attempts[row]),
            failures=self.leases.failures[row],
            progress=self.leases.progress.get(row),
            poisons=self._hazards.poisons(task),
            suspicion=self._hazards.suspicion(task),
        )

    def _by_row(self, positions: Mapping[str, TaskProgress]) -> dict[int, TaskProgress]:
        """Of tasks that are not folded."""
        single = {name: at for name, at in positions.items() if Run.of(name) is None}
        return dict(zip(self._rows_of(list(single)), single.values(), strict=True))

    def _rows_of_run(self, run: Run) -> npt.NDArray[np.int64]:
        """The tasks of a source are numbered in the order of their rows."""
        rows = np.flatnonzero(self.leases.sources == self._names.index(run.source))
        if run.end > len(rows):
            raise InfrastructureError(
                f"window {self.window} generation {self.generation} has no tasks {run.name!r}"
            )
        return rows[run.first : run.end]

    def _rows_of(self, task_ids: list[str]) -> list[int]:
        unknown = [task_id for task_id in task_ids if task_id not in self._rows]
        if unknown:
            found = pc.index_in(pa.array(unknown, pa.string()), value_set=self._ids)
            if found.null_count:
                raise InfrastructureError(
                    f"window {self.window} generation {self.generation} has no task "
                    f"{unknown[found.to_pylist().index(None)]!r}"
                )
            self._rows.update(zip(unknown, found.to_pylist(), strict=True))
        return [self._rows[task_id] for task_id in task_ids]

    def _count(self, row: int, before: TaskProgress | None, after: TaskProgress) -> None:
        source = self._names[int(self.leases.sources[row])]
        self.rows_used[source] += after.rows_read - (before.rows_read if before else 0)


def _runs_of(positions: Progress) -> list[tuple[Run, TaskProgress]]:
    found = ((Run.of(name), at) for name, at in positions.items())
    return [(run, at) for run, at in found if run is not None]


def _ids_of(tasks: pa.Table) -> pa.Array:
    return pa.concat_arrays(tasks["task_id"].chunks or [_NO_IDS])
