"""The same sequences with a topic of a real broker, and what only its producers can do."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from support.sequences.machine import NULLS, PARTITIONS, STEP, Sequences
from support.sequences.topic import End, Form, Topic
from support.sequences.writer import RemoteWriter


class BrokerSequences(Sequences):
    """Rules of the base are those for any stream."""

    bootstrap: ClassVar[str]
    writer: ClassVar[RemoteWriter]
    log: Topic

    @initialize(warm=st.booleans(), rows=st.integers(1, 40), form=st.sampled_from(Form.__args__))
    def begin(self, warm: bool, rows: int, form: Form) -> None:
        name = f"clicks-{uuid.uuid4().hex[:12]}"
        self.log = Topic(self.writer, name, form)
        options = {"bootstrap": self.bootstrap, "topic": name, "format": form}
        self._begin(warm, rows, {"kind": "kafka", "options": options})

    def teardown(self) -> None:
        self.writer.delete(self.log.name)
        super().teardown()

    @rule(
        name=PARTITIONS,
        quiet=st.integers(0, 30),
        count=st.integers(1, 30),
        nulls=NULLS,
        end=st.sampled_from(["commit", "commit", "abort"]),
    )
    def transact(self, name: str, quiet: int, count: int, nulls: tuple[int, ...], end: End) -> None:
        """In time, and all at once or not at all."""
        self.log.partition(name)
        begin = self._next(name) + timedelta(hours=quiet)
        added = [(begin + number * STEP, 2, nulls[:1], False) for number in range(count)]
        self.log.transact(name, added, end)

    @precondition(lambda self: self.log.opened is None)
    @rule(name=PARTITIONS, count=st.integers(1, 10))
    def open_transaction(self, name: str, count: int) -> None:
        """It stays open while others write, plan and run."""
        self.log.partition(name)
        begin = self._next(name)
        added = [(begin + number * STEP, 2, (), False) for number in range(count)]
        self.log.transact(name, added, "leave")

    @precondition(lambda self: self.log.opened is not None)
    @rule(end=st.sampled_from(["commit", "commit", "abort"]))
    def end_transaction(self, end: End) -> None:
        self.log.finish(end)
