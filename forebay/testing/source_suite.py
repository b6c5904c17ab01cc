"""The contract of a source as one test class.

Test a kind from another package (docs/write-a-source.md) like this:

    class TestShopSource(SourceSuite):
        kind = "shop"

        def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
            ...store the batches in addition to what is already there...
            return {"endpoint": ...}  # options of the kind

Mixins are for what not every kind does: `DescribesSuite` and `CommitsSuite` for the parts that it
adds; if stored values may not fit a declared type, `BadRowSuite`; if stored ranges can be damaged,
`DamageSuite`; if files can be replaced, `ReplanSuite`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.look.sampling import SampleLimits, sample_rows
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.contract.base import Commits, Describes, Scan, Source, is_held
from forebay.datatasks.tasks import Chunk, DataTask, DeadRow, Position
from forebay.errors import DataError
from forebay.testing.source_data import COLUMNS, EVENT_TIME, NUMBER, Batch, batch, hours
from forebay.testing.unit_checks import check_units, read_around_units

__all__ = [
    "BadRowSuite",
    "ChangeSuite",
    "CommitsSuite",
    "DamageSuite",
    "DescribesSuite",
    "MissingColumnSuite",
    "ReplanSuite",
    "SourceBase",
    "SourceSuite",
]

ALL = list(COLUMNS)
WIDE = [Interval(hours(0, 0)[0].start, hours(3, 3)[0].end)]


def tasks_of(scan: Scan, spans: Sequence[Interval], index: int) -> list[DataTask]:
    """The tasks of one span of a scan."""
    found = np.flatnonzero(np.asarray(scan.tasks["span"]) == index)
    rows = zip(found, scan.tasks.take(pa.array(found)).to_pylist(), strict=True)
    return [DataTask.of_row(each, f"suite/{row}", "suite", "w", spans[index]) for row, each in rows]


def numbers(chunks: Sequence[Chunk]) -> list[int]:
    """The numbers of all rows read."""
    return [value for chunk in chunks for value in chunk.batch.column(NUMBER).to_pylist()]


class SourceBase(ABC):
    """What a kind has to provide to be tested."""

    kind: ClassVar[str]
    chunk_rows: ClassVar[int] = 7

    @abstractmethod
    def publish(self, place: Path, batches: list[Batch]) -> dict[str, Any]:
        """Add batches to the storage at `place` (a folder of this test); return the options."""

    def held(self, table: pa.Table) -> pa.Table:
        """What reading a table returns. Override it if the storage cannot hold such nulls."""
        return table

    def spec(self, options: dict[str, Any], **more: Any) -> SourceSpec:
        """The declaration of the suite's columns."""
        fields: dict[str, Any] = {
            "name": "suite",
            "kind": self.kind,
            "options": options,
            "columns": COLUMNS,
            "event_time": EVENT_TIME,
        }
        return SourceSpec.model_validate(fields | more)

    def opened(self, place: Path, batches: list[Batch], **more: Any) -> Source:
        """Publish the batches and open the source."""
        return open_source(self.spec(self.publish(place, batches), **more), place)

    def read(
        self,
        source: Source,
        task: DataTask,
        position: Position | None = None,
        columns: Sequence[str] = (NUMBER,),
    ) -> list[Chunk]:
        """All chunks of a task from a position on, each checked against the contract."""
        chunks = list(source.open(task, position, columns, self.chunk_rows))
        self._check(chunks, task, columns)
        return chunks

    def _check(self, chunks: list[Chunk], task: DataTask, columns: Sequence[str]) -> None:
        assert chunks, "a task gives at least one chunk, even if it is empty"
        assert chunks[-1].end >= max(chunk.end for chunk in chunks)
        hours = np.concatenate([chunk.hours for chunk in chunks])
        assert (np.diff(hours) >= 0).all(), "hours never decrease within a task"
        hours_of_task = -(-(task.data_to - task.data_from).total_seconds() // 3600)
        assert ((hours >= 0) & (hours < hours_of_task)).all()
        for chunk in chunks:
            assert chunk.batch.schema.names == list(columns)
            for name in columns:
                assert is_held(chunk.batch.schema.field(name).type, COLUMNS[name])
            sizes = {len(chunk.row_ids), len(chunk.parts), len(chunk.rows), len(chunk.hours)}
            if chunk.published is not None:
                sizes.add(len(chunk.published))
            assert sizes == {chunk.batch.num_rows}
            assert chunk.batch.num_rows <= self.chunk_rows
            positions = [chunk.position(row) for row in range(len(chunk.rows) + 1)]
            assert positions == sorted(positions)

    def read_all(self, source: Source, spans: Sequence[Interval], column: str) -> None:
        """Plan and read one column of all spans."""
        for task in self._tasks(source, spans):
            list(source.open(task, None, [column], self.chunk_rows))

    def _planned(self, place: Path, **more: Any) -> tuple[Source, list[DataTask]]:
        """Hours 0 and 1, of 40 and 20 rows."""
        source = self.opened(place, [batch(0, range(40)), batch(1, range(40, 60))], **more)
        return source, self._tasks(source, hours(0, 1))

    def _tasks(self, source: Source, spans: Sequence[Interval]) -> list[DataTask]:
        """All tasks of all spans, planned in one scan."""
        scan = source.scan(spans)
        return [task for index in range(len(spans)) for task in tasks_of(scan, spans, index)]

    def read_span(self, source: Source, spans: Sequence[Interval], index: int) -> list[Chunk]:
        """All chunks of all tasks of one span, planned with the others in one scan."""
        tasks = tasks_of(source.scan(spans), spans, index)
        return [chunk for task in tasks for chunk in self.read(source, task)]


class SourceSuite(SourceBase):
    """What every kind must do."""

    @pytest.fixture
    def batches(self) -> list[Batch]:
        """Hours 0, 1 (two batches) and 3; nothing in hour 2."""
        return [
            batch(0, range(40)),
            batch(1, range(40, 61)),
            batch(1, range(61, 70), minute=30),
            batch(3, range(70, 103)),
        ]

    @pytest.fixture
    def source(self, tmp_path: Path, batches: list[Batch]) -> Iterator[Source]:
        """A source with the batches, opened."""
        source = self.opened(tmp_path, batches)
        yield source
        source.close()

    def test_every_row_is_in_exactly_one_window(self, source: Source) -> None:
        spans = hours(0, 3)
        read = [sorted(numbers(self.read_span(source, spans, index))) for index in range(4)]
        assert read == [list(range(40)), list(range(40, 70)), [], list(range(70, 103))]

    def test_planned_rows_are_those_read(self, source: Source) -> None:
        for task in self._tasks(source, hours(0, 3)):
            assert task.rows in {None, len(numbers(self.read(source, task)))}

    def test_a_sample_has_every_row_of_its_spans_once(self, source: Source) -> None:
        spans = [hours(0, 0)[0], hours(1, 1)[0], hours(3, 3)[0]]
        found = sample_rows(source, spans, [NUMBER], SampleLimits(), rows_max=1000)
        assert sorted(found.table.column(NUMBER).to_pylist()) == list(range(103))
        assert (found.is_whole, found.read_rows) == (True, 103)
        assert found.stored_rows in {None, 103}
        some = sample_rows(source, spans, [NUMBER], SampleLimits(), rows_max=9)
        kept = some.table.column(NUMBER).to_pylist()
        assert len(set(kept)) == len(kept) == 9
        assert not some.is_whole

    def test_tasks_are_ordered(self, source: Source) -> None:
        tasks = source.scan(hours(0, 3)).tasks
        keys = list(zip(tasks["span"].to_pylist(), tasks["hour"].to_pylist(), strict=True))
        assert keys == sorted(keys)

    def test_one_scan_of_all_windows_equals_one_for_each(self, source: Source) -> None:
        spans = hours(0, 3)
        together = source.scan(spans)
        for index, span in enumerate(spans):
            alone = source.scan([span])
            assert alone.fingerprints == [together.fingerprints[index]]
            ours = [task.ranges for task in tasks_of(together, spans, index)]
            assert [task.ranges for task in tasks_of(alone, [span], 0)] == ours

    def test_a_wider_window_holds_the_rows_of_its_hours(self, source: Source) -> None:
        assert sorted(numbers(self.read_span(source, WIDE, 0))) == list(range(103))

    def test_reading_again_from_any_row_repeats_and_skips_nothing(self, source: Source) -> None:
        for task in self._tasks(source, WIDE):
            chunks = self.read(source, task)
            everything = numbers(chunks)
            done = 0
            for chunk in chunks:
                for row in {0, 1, len(chunk.rows) // 2, len(chunk.rows)}:
                    again = self.read(source, task, chunk.position(row))
                    assert numbers(again) == everything[done + row :]
                done += len(chunk.rows)
            assert numbers(self.read(source, task, chunks[-1].end)) == []

    def test_units_read_alone_are_the_whole_task(self, source: Source) -> None:
        for task in self._tasks(source, WIDE):
            check_units(source, task, lambda *reading: numbers(self.read(*reading)))

    def test_a_unit_that_is_read_around_is_dead_and_nothing_else(self, source: Source) -> None:
        for task in self._tasks(source, WIDE):
            for chunks in read_around_units(source, task, self.chunk_rows):
                self._check(chunks, task, [NUMBER])

    def test_row_ids_are_stable_and_distinct(self, source: Source) -> None:
        def ids() -> list[int]:
            tasks = self._tasks(source, hours(0, 3))
            chunks = [chunk for task in tasks for chunk in self.read(source, task)]
            return [int(value) for chunk in chunks for value in chunk.row_ids]

        first = ids()
        assert len(set(first)) == 103
        assert ids() == first

    def test_values_of_every_type_and_their_nulls(
        self, source: Source, batches: list[Batch]
    ) -> None:
        stored = self.held(pa.concat_tables([each.table for each in batches]))
        chunks = [
            chunk
            for task in self._tasks(source, hours(0, 3))
            for chunk in self.read(source, task, columns=ALL)
        ]
        read = pa.Table.from_batches([chunk.batch for chunk in chunks]).sort_by(NUMBER)
        for name in ALL:
            assert read[name].to_pylist() == stored[name].to_pylist(), name

    def test_only_the_asked_columns_in_the_asked_order(self, source: Source) -> None:
        tasks = self._tasks(source, hours(0, 0))
        chunk = self.read(source, tasks[0], columns=["word", NUMBER])[0]
        assert chunk.batch.schema.names == ["word", NUMBER]
        bare = [each for task in tasks for each in self.read(source, task, columns=[])]
        assert sum(len(each.rows) for each in bare) == 40

    def test_the_fingerprint_changes_with_the_data_and_only_then(
        self, tmp_path: Path, batches: list[Batch]
    ) -> None:
        source = self.opened(tmp_path, batches)
        spans = hours(0, 4)
        before = source.scan(spans).fingerprints
        assert source.scan(spans).fingerprints == before
        self.publish(tmp_path, [batch(4, range(103, 110))])
        after = source.scan(spans).fingerprints
        assert [a == b for a, b in zip(after, before, strict=True)] == [True] * 4 + [False]
        source.close()

    def test_windows_without_rows(self, source: Source) -> None:
        scan = source.scan([*hours(2, 2), *hours(8, 9)])
        assert scan.tasks.num_rows == 0
        assert len(scan.fingerprints) == 3
        assert source.scan([]).fingerprints == []

    def test_an_old_window_is_ready(self, source: Source) -> None:
        assert source.readiness(hours(0, 0)[0]).ready

    def test_windows_are_as_ready_together_as_alone(self, source: Source) -> None:
        spans = hours(0, 3)
        assert source.readiness_of(spans) == [source.readiness(span) for span in spans]
        assert source.readiness_of([]) == []


class DescribesSuite(SourceBase):
    """Kinds that say what is stored."""

    def test_what_is_stored_as_declared(self, tmp_path: Path) -> None:
        source, _ = self._planned(tmp_path)
        assert isinstance(source, Describes)
        described = source.describe()
        assert set(described.columns) >= set(ALL)
        assert described.newest is not None
        assert not described.empty_reason
        assert source.findings() == []
        source.close()

    def test_a_finding_names_the_column_that_is_not_there(self, tmp_path: Path) -> None:
        source = self.opened(tmp_path, [batch(0, range(5))], columns={**COLUMNS, "wort": "string"})
        assert isinstance(source, Describes)
        found = [finding for finding in source.findings() if finding.path == ("columns", "wort")]
        assert len(found) == 1
        assert "wort" in found[0].message
        source.close()


class CommitsSuite(SourceBase):
    """Kinds whose storage keeps positions."""

    def test_commit_takes_positions(self, tmp_path: Path) -> None:
        source, [task, *_] = self._planned(tmp_path)
        assert isinstance(source, Commits)
        end = self.read(source, task)[-1].end
        behind = [sum(each.count for each in source.lag("forebay.suite"))]
        for _ in range(2):
            source.commit("forebay.suite", {task.task_id: (task, end)})
            behind.append(sum(each.count for each in source.lag("forebay.suite")))
        assert behind[0] > behind[1] == behind[2] >= 0
        source.close()


class MissingColumnSuite(SourceBase):
    """Kinds whose stored rows have a schema: a declared column that is missing is an error."""

    def test_a_missing_column_is_bad_data(self, tmp_path: Path) -> None:
        source = self.opened(tmp_path, [batch(0, range(5))], columns={**COLUMNS, "wort": "string"})
        with pytest.raises(DataError, match="wort"):
            self.read_all(source, hours(0, 0), "wort")
        source.close()


class BadRowSuite(SourceBase):
    """Kinds that can hold a value that does not fit its declared type."""

    @abstractmethod
    def bad_batches(self) -> list[Batch]:
        """Rows 0-29 of hour 0; NUMBER of exactly rows 11 and 12 cannot be read as declared."""

    def test_a_bad_row_stops_the_job_by_default(self, tmp_path: Path) -> None:
        source = self.opened(tmp_path, self.bad_batches())
        with pytest.raises(DataError):
            self.read_all(source, hours(0, 0), NUMBER)
        source.close()

    def test_bad_rows_become_dead_letters(self, tmp_path: Path) -> None:
        source = self.opened(tmp_path, self.bad_batches(), bad_rows="dead_letter")
        tasks = self._tasks(source, hours(0, 0))
        chunks = [chunk for task in tasks for chunk in self.read(source, task)]
        assert sorted(numbers(chunks)) == [n for n in range(30) if n not in {11, 12}]
        dead = [row for chunk in chunks for row in chunk.dead]
        assert sum(row.rows for row in dead) == 2
        assert all(row.reason and row.location for row in dead)
        assert {sum(task.rows for task in tasks if task.rows is not None)} <= {30, 0}
        source.close()

    def test_dead_rows_lie_behind_the_position_they_are_read_from(self, tmp_path: Path) -> None:
        source = self.opened(tmp_path, self.bad_batches(), bad_rows="dead_letter")
        for task in self._tasks(source, hours(0, 0)):
            chunks = self.read(source, task)
            every = [row.position for chunk in chunks for row in chunk.dead]
            for chunk in chunks:
                again = [r.position for c in self.read(source, task, chunk.end) for r in c.dead]
                assert again == [position for position in every if position >= chunk.end]
        source.close()


class DamageSuite(SourceBase):
    """Kinds whose stored ranges can be damaged in place."""

    @abstractmethod
    def damage(self, place: Path) -> None:
        """Damage the row range of hour 0, whose 40 rows were published as one batch.

        Do it as a bad disk would: rewriting the range would replace the planned content.
        """

    def test_damage_stops_the_job_by_default(self, tmp_path: Path) -> None:
        source, tasks = self._planned(tmp_path)
        self.damage(tmp_path)
        with pytest.raises(DataError):
            [list(source.open(task, None, [NUMBER], self.chunk_rows)) for task in tasks]
        source.close()

    def test_damage_becomes_dead_letters_and_nothing_is_uncounted(self, tmp_path: Path) -> None:
        source, tasks = self._planned(tmp_path, bad_rows="dead_letter")
        self.damage(tmp_path)
        chunks = [chunk for task in tasks for chunk in self.read(source, task)]
        dead: list[DeadRow] = [row for chunk in chunks for row in chunk.dead]
        read = numbers(chunks)
        assert dead
        assert all(row.reason and row.location for row in dead)
        assert set(range(40, 60)) <= set(read)
        if all(task.rows is not None for task in tasks):
            assert len(read) + sum(row.rows for row in dead) == 60
        source.close()


class ChangeSuite(SourceBase):
    """Kinds whose stored content can be replaced: reading gives what was planned, or an error."""

    @abstractmethod
    def replace(self, place: Path) -> None:
        """Replace hour 0, whose 40 rows were published as one batch, with 40 other rows.

        Replace it atomically, under the same name: a reader keeps the old content open.
        """

    @pytest.mark.parametrize("policy", ["fail", "dead_letter"])
    def test_what_was_replaced_since_it_was_planned_is_an_error(
        self, tmp_path: Path, policy: str
    ) -> None:
        source, [task, *_] = self._planned(tmp_path, bad_rows=policy)
        assert numbers(self.read(source, task))
        self.replace(tmp_path)
        with pytest.raises(DataError, match="changed after it was planned"):
            list(source.open(task, None, [NUMBER], self.chunk_rows))
        source.close()

    def test_what_is_replaced_while_it_is_read_is_an_error(self, tmp_path: Path) -> None:
        source, [task, *_] = self._planned(tmp_path)
        chunks = source.open(task, None, [NUMBER], 7)
        read = [next(chunks)]
        self.replace(tmp_path)
        with pytest.raises(DataError, match="changed after it was planned"):
            read += chunks
        source.close()

    def test_nobody_gets_past_content_that_was_not_looked_at_again(self, tmp_path: Path) -> None:
        """A reader that dies after the last row of a file leaves nothing to check."""
        source, [task, *_] = self._planned(tmp_path)
        done = Position(0, 0)
        chunks = source.open(task, None, [NUMBER], 7)
        while done.part == 0:
            last, done = done, next(chunks).end
        self.replace(tmp_path)
        with pytest.raises(DataError, match="changed after it was planned"):
            list(source.open(task, last, [NUMBER], 7))
        source.close()


class ReplanSuite(ChangeSuite):
    """Kinds that plan replaced content anew."""

    def test_what_was_replaced_is_planned_anew(self, tmp_path: Path) -> None:
        source, _ = self._planned(tmp_path)
        spans = hours(0, 1)
        before = source.scan(spans)
        self.replace(tmp_path)
        after = source.scan(spans)
        assert after.fingerprints[0] != before.fingerprints[0]
        assert after.fingerprints[1] == before.fingerprints[1]
        read = [n for task in tasks_of(after, spans, 0) for n in numbers(self.read(source, task))]
        assert len(read) == 40
        assert not set(read) & set(range(40))
        source.close()
