"""Footers of files nobody vouches for, parsed in a child process that may die of them."""

from __future__ import annotations

import json
import logging
import os
import select
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Annotated, Self

import pyarrow as pa
from pydantic import Base64Bytes, Field, ValidationError, model_validator

from forebay.datatasks.sources.parquet import footer_process
from forebay.errors import DataError, InfrastructureError
from forebay.system.environment import BASE, inherited
from forebay.system.message import Message
from forebay.system.processes.children import PipedProcess
from forebay.system.processes.ends import how_it_ended, is_from_outside, took_too_long

COMMAND = (sys.executable, "-P", "-m", footer_process.MODULE)
# Each costs the start of two children: whoever has more of them has no slip in one file.
DEATHS_MAX = 100
# Deaths that nothing explains, such as a `kill -9` by hand.
_UNEXPLAINED_MAX = 3
# The child's own bound is one of CPU time: this one is for a child that nobody lets run.
_SECONDS_MAX = 600.0
_PART_BYTES = 1 << 16
_SAID_MAX = 200
_LOG = logging.getLogger(__name__)

Int64 = Annotated[int, Field(ge=footer_process.UNKNOWN, lt=2**63)]
Numbers = tuple[Int64, ...]


class FooterAnswer(Message):
    """What the child says of one footer (see `footer_process.parsed`), or why it cannot."""

    rows: Numbers = ()
    sizes: Numbers = ()
    low: Numbers = ()
    high: Numbers = ()
    state: Numbers = ()
    stored_schema: Base64Bytes = Field(default=b"", alias="schema")
    error: str = ""

    @model_validator(mode="after")
    def _equally_long(self) -> Self:
        numbers = (self.rows, self.sizes, self.low, self.high, self.state)
        if len({len(each) for each in numbers}) > 1:
            raise ValueError("its lists of rows, sizes and times are not equally long")
        return self

    @property
    def arrow_schema(self) -> pa.Schema | None:
        content = self.stored_schema
        return pa.ipc.read_schema(pa.py_buffer(content)) if content else None


class _DeathError(Exception):
    """The child died. `is_crash`: by what it did itself, so that nobody else has killed it."""

    def __init__(self, number: int, last_words: str) -> None:
        self.is_crash = not is_from_outside(number)
        if took_too_long(number):
            super().__init__(f"reading its footer takes more than {footer_process.CPU_SECONDS} s")
            return
        why = f": {last_words}" if last_words and self.is_crash else ""
        super().__init__(f"the process that read its footer {how_it_ended(-number)}{why}")


class FooterReader:
    """Asks a child about one footer after the other, for all threads; starts it when it is needed.

    A file that kills it is found: it is read once more, alone. Where it is read then, and a crash
    was the reason, one that was read before it has done the damage, and is found by halves.
    """

    def __init__(
        self,
        tail_of: Callable[[str], bytes],
        event_time: str | None,
        *,
        schema: bool = False,
        command: Sequence[str] = COMMAND,
    ) -> None:
        """tail_of: reads the last bytes of a file again. schema: columns are all that is wanted."""
        # Files that were answered, and yet had ruined the child that died of a later one.
        self.ruinous: dict[str, str] = {}
        self._tail_of = tail_of
        self._call = {"event_time": event_time, "schema": schema}
        self._command = list(command)
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._before: list[str] = []  # read by this child
        self._deaths = self._unexplained = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def read(self, path: str, tail: bytes) -> FooterAnswer:
        """What a file's footer says. tail: its last bytes.

        Raises:
            DataError: when too many files end their reader.
            InfrastructureError: when no child can be started, or children end for no reason.
        """
        with self._lock:
            try:
                found = self._asked(path, tail)
            except _DeathError as death:
                found = self._after(death, path, tail)
            return found

    def _after(self, death: _DeathError, path: str, tail: bytes) -> FooterAnswer:
        before, self._before = self._before, []
        if death.is_crash and not before:
            return self._poison(path, death)
        try:
            found = self._asked(path, tail)
        except _DeathError as again:
            return self._poison(path, again)
        if death.is_crash and (culprit := self._culprit(before, path, tail)) is not None:
            self.ruinous[culprit] = self._poison(culprit, death).error
            return found
        _LOG.warning("a process that read the footer of %s died, and the second one did not", path)
        self._unexplained += 1
        if self._unexplained >= _UNEXPLAINED_MAX:
            raise InfrastructureError(
                f"{path}: {death}, and nothing in it explains that: look at the system's log"
            )
        return found

    def _culprit(self, before: Sequence[str], path: str, tail: bytes) -> str | None:
        """The last file of those read before without which a later one kills nobody."""
        low, high = 0, len(before)  # with what is from `low` on it dies, from `high` on it lives
        if not self._kills(before, path, tail):
            return None
        while high - low > 1:
            middle = (low + high) // 2
            if self._kills(before[middle:], path, tail):
                low = middle
            else:
                high = middle
        return before[low]

    def _kills(self, before: Sequence[str], path: str, tail: bytes) -> bool:
        self._end()
        try:
            for each in before:
                self._asked(each, self._tail_of(each))
            self._asked(path, tail)
        except _DeathError:
            return True
        return False

    def _poison(self, path: str, death: _DeathError) -> FooterAnswer:
        _LOG.warning("%s: %s", path, death)
        self._deaths += 1
        if self._deaths > DEATHS_MAX:
            raise DataError(
                f"{path}: {death}, as for {DEATHS_MAX} other files: no more are set aside. "
                "Correct what writes them, and move them away"
            )
        return FooterAnswer(error=str(death))

    def _asked(self, path: str, tail: bytes) -> FooterAnswer:
        if self._child is None:
            self._before = []
            self._child = _Child(self._command)
        call = json.dumps(self._call | {"bytes": len(tail)}).encode() + b"\n"
        try:
            line = self._child.answer(call + tail)
        except BaseException:
            self._end()
            raise
        self._before.append(path)
        try:
            return FooterAnswer.model_validate_json(line)
        except ValidationError as error:
            return FooterAnswer(error=f"its footer cannot be understood: {error}")

    def _end(self) -> None:
        if self._child is not None:
            self._child.end()
        self._child = None


class _Child:
    """A process of `footer_process`, and what it says beside its answers."""

    def __init__(self, command: Sequence[str]) -> None:
        with ExitStack() as stack:
            self._said = stack.enter_context(tempfile.TemporaryFile())
            try:
                environment = inherited(os.environ, BASE)
                self._piped = PipedProcess.started(command, environment, self._said)
            except OSError as error:
                raise InfrastructureError(
                    f"a process that reads footers cannot be started: {error}"
                ) from error
            stack.callback(self._piped.close)
            self._open = stack.pop_all()

    def answer(self, call: bytes) -> bytes:
        self._piped.call(call)
        poller = select.poll()
        poller.register(self._piped.answers, select.POLLIN)
        deadline = time.monotonic() + _SECONDS_MAX
        line = bytearray()
        while not line.endswith(b"\n"):
            if not poller.poll(1000 * max(0.0, deadline - time.monotonic())):
                raise InfrastructureError(
                    f"the process that reads footers has said nothing for {_SECONDS_MAX:g} s"
                )
            part = os.read(self._piped.answers, _PART_BYTES)
            if not part:
                raise self._death()
            line += part
        return bytes(line)

    def _death(self) -> Exception:
        code = self._piped.process.wait()
        end = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, end - _SAID_MAX))
        last = self._said.read().decode(errors="replace").strip().rpartition("\n")[2].strip()
        if code < 0:
            return _DeathError(-code, last)
        return InfrastructureError(
            f"the process that reads footers ended with exit code {code}: {last}"
        )

    def end(self) -> None:
        self._open.close()
