"""From Kafka messages to chunks: decode in groups, number the rows, take out what is bad."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.datatasks.sources.common.rows.chunks import Ints, place_text, without_columns
from forebay.datatasks.sources.common.rows.offset_runs import RECORDS, Run, Runs, as_runs, between
from forebay.datatasks.sources.common.values.row_ids import row_ids, splitmix64
from forebay.datatasks.sources.common.values.row_texts import row_texts, written_text
from forebay.datatasks.sources.common.values.times import UNKNOWN, hours_of, outside
from forebay.datatasks.sources.formats.decoder import Decoded, Decoder
from forebay.datatasks.sources.kafka.read import Stretch
from forebay.datatasks.sources.kafka.wire.messages import Messages
from forebay.datatasks.tasks import Chunk, DataTask, DeadRow, Position
from forebay.errors import DataError
from forebay.system.instants import to_us

_GROUP_MESSAGES = 512
_GROUP_BYTES = 4 << 20
_GROUP_RUNS = 4096
# Producers stamp what they like; later ones would not fit in microseconds.
_LATEST_MS = np.iinfo(np.int64).max // 1000


@dataclass
class Group:
    """Neighbouring messages that are decoded together.

    runs: what each offset is. refused: those of them whose records were not read, and why.
    """

    offsets: list[int] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    refused: list[tuple[Run, str]] = field(default_factory=list)

    def position(self, message: int, row: int) -> Position:
        """Where a row of a message is; after the last message, where the group ends."""
        if message < len(self.offsets):
            return Position(self.offsets[message], row)
        return Position(self.runs[-1].end, 0)


def groups(found: Iterable[Messages], messages_max: int) -> Iterator[Group]:
    """Messages joined or cut to groups of bounded count and size."""
    group, size = Group(), 0
    for messages in found:
        each = zip(messages.offsets, messages.timestamps, messages.values, strict=True)
        for run in messages.runs:
            if messages.refusal and run.kind == RECORDS:
                group.refused.append((run, messages.refusal))
            first = run.first
            count = run.end - first if run.kind == RECORDS else 0
            for offset, timestamp, value in islice(each, count):
                group.offsets.append(offset)
                group.timestamps.append(timestamp)
                group.values.append(value)
                size += len(value or b"")
                if len(group.offsets) >= messages_max or size >= _GROUP_BYTES:
                    group.runs.append(run._replace(first=first, end=offset + 1))
                    yield group
                    group, size, first = Group(), 0, offset + 1
            if first < run.end:
                group.runs.append(run._replace(first=first))
            if len(group.runs) >= _GROUP_RUNS:
                yield group
                group, size = Group(), 0
    if group.runs:
        yield group


def microseconds(timestamps: Sequence[int]) -> Ints:
    """Of timestamps of records. Later ones than an int64 holds are the latest that it does."""
    return np.minimum(np.array(timestamps, np.int64), _LATEST_MS) * 1000


@dataclass(frozen=True)
class ChunkMaker:
    decoder: Decoder
    stretch: Stretch
    task: DataTask
    start: Position
    policy: Literal["fail", "dead_letter"]
    chunk_rows: int

    def chunks(self, found: Iterable[Messages]) -> Iterator[Chunk]:
        messages_max = self.chunk_rows if self.decoder.one_row else _GROUP_MESSAGES
        for group in groups(found, max(1, messages_max)):
            yield from self._split(group)

    def _split(self, group: Group) -> Iterator[Chunk]:
        offsets = np.array(group.offsets, np.int64)
        stamps = microseconds(group.timestamps)
        runs, begin = as_runs(group.runs), 0
        refused = [self._refused(run, reason) for run, reason in group.refused]
        for decoded in self.decoder.decode(group.values):
            end = group.position(*decoded.end)
            parts = offsets[decoded.messages]
            resumed = (parts == self.start.part) & (decoded.rows < self.start.row)
            dead = self._dead(group, decoded, parts, resumed)
            dead += [row for row in refused if begin <= row.position.part < end.part]
            dead.sort(key=lambda row: row.position)
            if dead and self.policy == "fail":
                raise DataError(f"{place_text(dead[0].location)}: {dead[0].reason}")
            good = ~resumed
            good[list(decoded.bad_rows)] = False
            whole = self._chunk(decoded, np.flatnonzero(good), parts, stamps, end)
            yield from _pieces(whole, runs, begin, dead, self.chunk_rows)
            begin = end.part

    def _chunk(
        self, decoded: Decoded, kept: Ints, parts: Ints, stamps: Ints, end: Position
    ) -> Chunk:
        """The kept rows. parts: offsets of all rows; stamps: instants of all messages."""
        batch = decoded.batch
        if len(kept) < batch.num_rows:
            batch = batch.take(pa.array(kept)) if batch.num_columns else without_columns(len(kept))
        times = stamps[decoded.messages[kept]]
        span = to_us(self.task.data_from), to_us(self.task.data_to)
        rows = decoded.rows[kept]
        ids = row_ids(self.stretch.path, parts[kept])
        if not self.decoder.one_row:
            ids = splitmix64(ids.view(np.uint64) + rows.astype(np.uint64)).view(np.int64)
        return Chunk(
            batch=batch,
            row_ids=ids,
            parts=parts[kept],
            rows=rows,
            hours=hours_of(times, *span),
            end=end,
            outside=outside(times, *span),
            published=np.where(times < 0, UNKNOWN, times),  # Kafka's -1: nobody stamped it
        )

    def _dead(
        self, group: Group, decoded: Decoded, parts: Ints, resumed: npt.NDArray[np.bool_]
    ) -> list[DeadRow]:
        """Bad messages and bad rows. parts: offsets of all rows."""
        found = [
            self._dead_row(Position(group.offsets[n], 0), reason, written_text(group.values[n]))
            for n, reason in decoded.bad_messages.items()
        ]
        bad = [row for row in decoded.bad_rows if not resumed[row]]
        for row, text in zip(bad, row_texts(decoded.batch, bad), strict=True):
            position = Position(int(parts[row]), int(decoded.rows[row]))
            found.append(self._dead_row(position, decoded.bad_rows[row], text))
        return found

    def _refused(self, run: Run, reason: str) -> DeadRow:
        count = run.end - run.first
        dead = self._dead_row(Position(run.first, 0), reason, None)
        location = {**dead.location, "offsets": count}
        return dead.model_copy(update={"location": location, "rows": count})

    def _dead_row(self, position: Position, reason: str, text: str | None) -> DeadRow:
        topic, partition, one_row = self.stretch.topic, self.stretch.partition, self.decoder.one_row
        location = message_location(topic, partition, position, one_row=one_row)
        return DeadRow(position=position, location=location, reason=reason, row=text)


def message_location(
    topic: str, partition: int, position: Position, *, one_row: bool
) -> dict[str, str | int]:
    """one_row: whether each message is one row, so that its offset says enough."""
    row = {} if one_row else {"row": position.row}
    return {"topic": topic, "partition": partition, "offset": position.part, **row}


def _pieces(
    whole: Chunk, runs: Runs, begin: int, dead: list[DeadRow], chunk_rows: int
) -> Iterator[Chunk]:
    """Each piece takes the dead rows and the offsets, from `begin` on, that are before its end."""
    positions = [row.position for row in dead]
    taken = 0
    for first in range(0, max(len(whole.parts), 1), chunk_rows):
        last = first + chunk_rows
        end = whole.position(last)
        until = bisect_left(positions, end)
        yield Chunk(
            whole.batch.slice(first, chunk_rows),
            whole.row_ids[first:last],
            whole.parts[first:last],
            whole.rows[first:last],
            whole.hours[first:last],
            end,
            tuple(dead[taken:until]),
            None if whole.outside is None else whole.outside[first:last],
            between(runs, begin, end.part),
            None if whole.published is None else whole.published[first:last],
        )
        taken, begin = until, end.part
