"""A topic as the tests recorded it: what each of its offsets is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from forebay.datatasks.sources.kafka.producer import ipc_message, json_message
from support import independent
from support.sequences.truth import Added, Log, Partition, Rows, Segment, table
from support.sequences.writer import RemoteWriter

Form = Literal["json", "arrow-ipc"]
End = Literal["commit", "abort", "leave"]


class Message(Segment):
    """A segment of one offset; json: one row of it, too."""

    @property
    def end(self) -> int:
        return self.base + 1


@dataclass
class TopicPartition(Partition):
    """All that was ever written to it. Its segments are what can be read.

    messages: those that were committed, and those of the open transaction.
    others: kinds of the other offsets. open_from: where the open transaction began.
    """

    one_row: bool = True
    messages: list[Message] = field(default_factory=list)
    others: dict[int, str] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)

    @property
    def written(self) -> int:
        return len(self.messages) + len(self.others)

    @property
    def end(self) -> int:
        return min(self.open, default=self.written)

    @property
    def newest(self) -> datetime | None:
        return max((each.stamp for each in self.messages if not each.odd), default=None)

    def views(self) -> Iterator[Sequence[Segment]]:
        yield self.messages
        yield [each for each in self.messages if each.base not in self.open]

    def late(self, segments: int, rows: int) -> int:
        return segments * rows if self.one_row else segments

    def place(self, offset: int) -> int:
        """How many records that can be read are before it: others make no difference."""
        return sum(each.base < offset for each in self.segments)

    def show(self) -> None:
        self.segments = [each for each in self.messages if each.base < self.end]

    def kinds(self, first: int, end: int) -> Counter[str]:
        """What the offsets [first, end) are, none of which a transaction may be open on."""
        assert 0 <= first <= end <= self.end, f"{self.name}: {first} to {end} of {self.end}"
        kinds = Counter(self.others.get(offset, "records") for offset in range(first, end))
        assert kinds["records"] == len(self.between(first, end)), f"{self.name}: {first} to {end}"
        return kinds


class Topic(Log):
    partitions: dict[str, TopicPartition]

    def __init__(self, writer: RemoteWriter, name: str, form: Form) -> None:
        super().__init__(Path(name))
        self.writer, self.name, self.form = writer, name, form
        self.opened: str | None = None  # partition of the open transaction
        writer.create(name)
        self._add(1)

    @property
    def place(self) -> str:
        return f"topic {self.name}, partition"

    def partition(self, name: str) -> Partition:
        if name not in self.partitions:
            self.writer.grow(self.name, int(name) + 1)
            self._add(int(name) + 1)
        return self.partitions[name]

    def append(self, name: str, added: Iterable[Added]) -> None:
        self._send(name, added, None)

    def transact(self, name: str, added: Iterable[Added], end: End) -> None:
        offsets = self._send(name, added, end)
        partition = self.partitions[name]
        if end == "leave":
            self.opened = name
            partition.open = set(offsets)
            partition.show()
        else:
            self._ended(partition, offsets, end)

    def finish(self, end: End) -> None:
        assert self.opened is not None
        partition = self.partitions[self.opened]
        self.opened = None
        offsets, partition.open = partition.open, set()
        self.writer.finish(self.name, int(partition.name), end, partition.written + 1)
        self._ended(partition, offsets, end)

    def trim(self, name: str, count: int) -> None:
        """Delete the oldest records, never the last one."""
        partition = self.partitions[name]
        stored = [each for each in partition.segments if each.base >= partition.kept_from]
        gone = stored[: min(count, len(stored) - 1)]
        if gone:
            partition.kept_from = gone[-1].end
            self.writer.delete_before(self.name, int(name), partition.kept_from)

    def rows(self, offsets: dict[str, tuple[int, int]]) -> Rows:
        ids: list[Any] = []
        dead: set[tuple[str, ...]] = set()
        for name, (first, end) in offsets.items():
            for each in self.partitions[name].between(first, end):
                kept = np.array(sorted({*range(each.rows)} - {*each.nulls}), np.uint64)
                found = independent.row_ids(f"{self.name}/{name}", np.array([each.base]))
                if self.form == "arrow-ipc":
                    with np.errstate(over="ignore"):
                        rows = found.view(np.uint64) + kept
                    found = independent.splitmix64(rows).view(np.int64)
                elif not len(kept):
                    found = np.empty(0, np.int64)
                ids.append(found)
                dead |= {self._place(name, each, row) for row in each.nulls}
        return Rows(independent.sums(ids), frozenset(dead))

    def offsets(self, offsets: dict[str, tuple[int, int]]) -> dict[str, int]:
        total: Counter[str] = Counter()
        for name, span in offsets.items():
            total += self.partitions[name].kinds(*span)
        return {kind: total[kind] for kind in ("records", "control", "aborted", "compacted")}

    def letter(self, location: dict[str, Any]) -> tuple[str, ...]:
        assert location["topic"] == self.name
        return tuple(str(location[key]) for key in location if key != "topic")

    def require_as_stored(self) -> None:
        """What a plain consumer reads is what is remembered, so all that is counted by it is so."""
        stored = sorted(
            (int(partition.name), each.base, int(each.stamp.timestamp() * 1000))
            for partition in self.partitions.values()
            for each in partition.segments
            if each.base >= partition.kept_from
        )
        assert sorted(self.writer.committed(self.name)) == stored

    def _send(self, name: str, added: Iterable[Added], end: End | None) -> list[int]:
        partition = self.partition(name)
        assert isinstance(partition, TopicPartition)
        sent: list[tuple[bytes, int]] = []
        messages: list[Message] = []
        for stamp, rows, nulls, odd in self._split(added):
            message = Message(partition.written + len(messages), rows, stamp, nulls, odd)
            messages.append(message)
            sent.append((self._value(message), int(stamp.timestamp() * 1000)))
        offsets = self.writer.send(self.name, int(name), sent, end)
        assert offsets == [each.base for each in messages]
        partition.messages += messages
        partition.show()
        return offsets

    def _split(self, added: Iterable[Added]) -> Iterator[Added]:
        for stamp, rows, nulls, odd in added:
            if self.form == "json":
                for row in range(rows):
                    yield stamp, 1, (0,) if row in nulls else (), odd
            else:
                yield stamp, rows, tuple(row for row in nulls if row < rows), odd

    def _value(self, message: Message) -> bytes:
        rows = table([message.stamp] * message.rows, message.nulls)
        return ipc_message(rows) if self.form == "arrow-ipc" else json_message(rows.to_pylist()[0])

    def _place(self, name: str, message: Message, row: int) -> tuple[str, ...]:
        place = (name, str(message.base))
        return place if self.form == "json" else (*place, str(row))

    def _ended(self, partition: TopicPartition, offsets: Iterable[int], end: End) -> None:
        partition.others[partition.written] = "control"
        if end == "abort":
            gone = set(offsets)
            partition.messages = [each for each in partition.messages if each.base not in gone]
            partition.others |= dict.fromkeys(gone, "aborted")
        partition.show()
        self.require_as_stored()

    def _add(self, count: int) -> None:
        for number in range(count):
            name = str(number)
            one_row = self.form == "json"
            self.partitions.setdefault(name, TopicPartition(name, one_row=one_row))
