"""From Kafka messages to chunks: decode in groups, number the rows, take out what is bad."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.datatasks.sources.common.chunks import Ints, place_text, without_columns
from forebay.datatasks.sources.common.offset_runs import RECORDS, Run, Runs, as_runs, between
from forebay.datatasks.sources.common.row_ids import row_ids, splitmix64
from forebay.datatasks.sources.common.times import hours_of, outside
from forebay.datatasks.sources.formats.decoder import Decoded, Decoder
from forebay.datatasks.sources.kafka.messages import Messages
from forebay.datatasks.sources.kafka.read import Stretch
from forebay.datatasks.tasks import Chunk, DataTask, DeadRow, Position
from forebay.errors import DataError
from forebay.system.instants import to_us

_GROUP_MESSAGES = 512
_GROUP_BYTES = 4 << 20
_GROUP_RUNS = 4096
_TEXT_MAX = 2000
# Producers stamp what they like; later ones would not fit in microseconds.
_LATEST_MS = np.iinfo(np.int64).max // 1000


@dataclass
class Group:
    """Neighbouring messages that are decoded together. runs: what each offset is."""

    offsets: list[int] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)


def groups(found: Iterable[Messages], messages_max: int) -> Iterator[Group]:
    """Messages joined or cut to groups of bounded count and size."""
    group, size = Group(), 0
    for messages in found:
        each = zip(messages.offsets, messages.timestamps, messages.values, strict=True)
        for run in messages.runs:
            first = run.first
            for offset, timestamp, value in islice(each, _length(run)):
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


def _length(run: Run) -> int:
    """How many messages it stands for."""
    return run.end - run.first if run.kind == RECORDS else 0


@dataclass(frozen=True)
class ChunkMaker:
    """Turns groups of one task's messages into chunks."""

    decoder: Decoder
    stretch: Stretch
    task: DataTask
    start: Position
    policy: Literal["fail", "dead_letter"]
    chunk_rows: int

    def chunks(self, found: Iterable[Messages]) -> Iterator[Chunk]:
        """All chunks; none is larger than `chunk_rows` rows."""
        messages_max = self.chunk_rows if self.decoder.one_row else _GROUP_MESSAGES
        for group in groups(found, max(1, messages_max)):
            yield from self._split(group, self.decoder.decode(group.values))

    def _split(self, group: Group, decoded: Decoded) -> Iterator[Chunk]:
        offsets = np.array(group.offsets, np.int64)[decoded.messages]
        resumed = (offsets == self.start.part) & (decoded.rows < self.start.row)
        dead = self._dead(group, decoded, offsets, resumed)
        bad = np.zeros(len(offsets), np.bool_)
        bad[list(decoded.bad_rows)] = True
        kept = np.flatnonzero(~resumed & ~bad)
        parts, rows = offsets[kept], decoded.rows[kept]
        batch = decoded.batch
        if len(kept) < batch.num_rows:
            batch = batch.take(pa.array(kept)) if batch.num_columns else without_columns(len(kept))
        stamps = np.minimum(np.array(group.timestamps, np.int64), _LATEST_MS)
        stamps = stamps[decoded.messages[kept]] * 1000
        start, end = to_us(self.task.data_from), to_us(self.task.data_to)
        whole = Chunk(
            batch=batch,
            row_ids=self._row_ids(parts, rows),
            parts=parts,
            rows=rows,
            hours=hours_of(stamps, start, end),
            end=Position(group.runs[-1].end, 0),
            outside=outside(stamps, start, end),
        )
        yield from _pieces(whole, as_runs(group.runs), dead, self.chunk_rows)

    def _row_ids(self, parts: Ints, rows: Ints) -> Ints:
        messages = row_ids(self.stretch.path, parts)
        if self.decoder.one_row:
            return messages
        return splitmix64(messages.view(np.uint64) + rows.astype(np.uint64)).view(np.int64)

    def _dead(
        self, group: Group, decoded: Decoded, offsets: Ints, resumed: npt.NDArray[np.bool_]
    ) -> list[DeadRow]:
        """Bad messages and bad rows by position; with the policy `fail` the first one raises."""
        found = [
            self._dead_row(Position(group.offsets[n], 0), reason, _text_of(group.values[n]))
            for n, reason in decoded.bad_messages.items()
        ]
        for index, reason in decoded.bad_rows.items():
            if not resumed[index]:
                position = Position(int(offsets[index]), int(decoded.rows[index]))
                values = decoded.batch.slice(index, 1).to_pylist()[0]
                text = json.dumps(values, default=str, ensure_ascii=False)
                found.append(self._dead_row(position, reason, text))
        found.sort(key=lambda row: row.position)
        if found and self.policy == "fail":
            raise DataError(f"{place_text(found[0].location)}: {found[0].reason}")
        return found

    def _dead_row(self, position: Position, reason: str, text: str | None) -> DeadRow:
        location: dict[str, str | int] = {
            "topic": self.stretch.topic,
            "partition": self.stretch.partition,
            "offset": position.part,
        }
        if not self.decoder.one_row:
            location["row"] = position.row
        return DeadRow(position=position, location=location, reason=reason, row=text)


def _text_of(value: bytes | None) -> str | None:
    """A message that did not decode, as JSON: itself where it is JSON, else a text of it."""
    if value is None:
        return None
    text = value[:_TEXT_MAX].decode(errors="replace")
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return json.dumps(text, ensure_ascii=False)
    return text


def _pieces(whole: Chunk, runs: Runs, dead: list[DeadRow], chunk_rows: int) -> Iterator[Chunk]:
    """Cut a chunk; each piece takes the dead rows and the offsets that lie before its end."""
    positions = [row.position for row in dead]
    taken, begin = 0, 0
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
        )
        taken, begin = until, end.part
