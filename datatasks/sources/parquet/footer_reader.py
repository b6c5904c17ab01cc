"""Footers of files nobody vouches for, parsed in a child process that may die of them."""

from __future__ import annotations

import json
import logging
import math
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Annotated, Generic, NamedTuple, Self, TypeVar

import pyarrow as pa
from pydantic import Base64Bytes, Field, ValidationError

from forebay.datatasks.sources.common.cautious.child import ChildDiedError, ReadingChild
from forebay.datatasks.sources.common.cautious.search import PoisonSearch, ReaderDiedError
from forebay.datatasks.sources.parquet import footer_process
from forebay.datatasks.tasks import Position
from forebay.errors import DataError, InfrastructureError
from forebay.system.environment import BASE, inherited
from forebay.system.message import Message
from forebay.system.processes.ends import is_from_outside, took_too_long

COMMAND = (sys.executable, "-P", "-m", footer_process.MODULE)
# Each costs the start of two children: whoever has more of them has no slip in one file.
DEATHS_MAX = 100
# Deaths that nothing explains, such as a `kill -9` by hand.
_UNEXPLAINED_MAX = 3
# The child's own bound is one of CPU time: this one is for a child that nobody lets run.
_SECONDS_MAX = 600.0
_THREADS = 8
# Of what a child has read, all may be read again to find what ruined it.
FILES_OF_A_CHILD = 4096
_LOG = logging.getLogger(__name__)

Int64 = Annotated[int, Field(ge=footer_process.UNKNOWN, lt=2**63)]
_Made = TypeVar("_Made")


class FooterAnswer(Message):
    """What the child says of one footer (see `footer_process.parsed`), or why it cannot."""

    groups: tuple[tuple[Int64, Int64, Int64, Int64, Int64], ...] = ()
    stored_schema: Base64Bytes = Field(default=b"", alias="schema")
    error: str = ""

    @property
    def arrow_schema(self) -> pa.Schema | None:
        content = self.stored_schema
        return pa.ipc.read_schema(pa.py_buffer(content)) if content else None


class FooterReader:
    """Asks a child about one footer after the other; what kills it is found as in a task."""

    def __init__(
        self, event_time: str | None, *, schema: bool = False, command: Sequence[str] = COMMAND
    ) -> None:
        """schema: columns are all that is wanted."""
        self._call = {"event_time": event_time, "schema": schema}
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the child
        name, environment = "the process that reads footers", inherited(os.environ, BASE)
        self.child = ReadingChild(name, command, environment, _require_answer, self._said)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.child.close()
        self._said.close()

    def read(
        self,
        paths: Sequence[str],
        tail_of: Callable[[str], bytes | str],
        made: Callable[[str, FooterAnswer, bytes], _Made],
    ) -> list[_Made | str]:
        """What is made of each file's footer, or why it cannot be read.

        tail_of: a file's last bytes, or why nobody can read them. made: of a path, what its footer
        says and these bytes.

        Raises:
            DataError: when too many files end their reader.
            InfrastructureError: when no child can be started, or children end for no reason.
        """
        with ThreadPoolExecutor(_THREADS) as pool:
            files = _Files(self, paths, lambda path: pool.submit(tail_of, path), made)
            search = PoisonSearch(files, math.inf, files.blame, files.unexplained, stretch_max=1)
            for first in range(0, len(paths), FILES_OF_A_CHILD):
                files.end = min(first + FILES_OF_A_CHILD, len(paths))
                if first:
                    self.child.close()
                search.run(Position(first, 0))
        return [files.results[number] for number in range(len(paths))]

    def ask(self, tail: bytes) -> FooterAnswer:
        """ReaderDiedError when the child dies of it."""
        call = json.dumps(self._call | {"bytes": len(tail)}).encode() + b"\n"
        try:
            line = self.child.answer(call + tail)
        except ChildDiedError as death:
            reason = f"the process that read its footer {death}"
            is_crash = not is_from_outside(death.number)
            if took_too_long(death.number):
                reason = f"reading its footer takes more than {footer_process.CPU_SECONDS} s"
            elif death.last_words and is_crash:
                reason = f"{reason}: {death.last_words}"
            raise ReaderDiedError(reason, is_crash=is_crash) from death
        try:
            return FooterAnswer.model_validate_json(line)
        except ValidationError as error:
            return FooterAnswer(error=f"its footer cannot be understood: {error}")


class _File(NamedTuple):
    first: Position
    end: Position


class _Files(Generic[_Made]):
    """Files as units of a search. Storage is asked for the next ones while a footer is parsed."""

    def __init__(
        self,
        reader: FooterReader,
        paths: Sequence[str],
        wanted: Callable[[str], Future[bytes | str]],
        made: Callable[[str, FooterAnswer, bytes], _Made],
    ) -> None:
        self.results: dict[int, _Made | str] = {}
        self.end = 0  # how many of them may be read by this child
        self._reader, self._paths, self._wanted, self._made = reader, paths, wanted, made
        self._ahead: dict[int, Future[bytes | str]] = {}
        self._poisons = self._unexplained = 0

    def units(self, position: Position, count: int) -> Sequence[_File]:
        numbers = range(position.part, min(position.part + count, self.end))
        return [_File(Position(each, 0), Position(each + 1, 0)) for each in numbers]

    def read(self, first: Position, end: Position) -> int:
        for number in range(first.part, end.part):
            self.results[number] = self._read(number)
        return end.part - first.part

    def close(self) -> None:
        self._reader.child.close()

    def blame(self, file: _File, reason: str) -> None:
        path = self._paths[file.first.part]
        _LOG.warning("%s: %s", path, reason)
        if self._poisons >= DEATHS_MAX:
            raise DataError(
                f"{path}: {reason}, as for {DEATHS_MAX} other files: no more are set aside. "
                "Correct what writes them, and move them away"
            )
        self._poisons += 1
        self.results[file.first.part] = reason

    def unexplained(self, file: _File, reason: str) -> None:
        path = self._paths[file.first.part]
        _LOG.warning("a process that read the footer of %s died, and the second one did not", path)
        self._unexplained += 1
        if self._unexplained >= _UNEXPLAINED_MAX:
            raise InfrastructureError(
                f"{path}: {reason}, and nothing in it explains that: look at the system's log"
            )

    def _read(self, number: int) -> _Made | str:
        for each in range(number, min(number + _THREADS, len(self._paths))):
            if each not in self._ahead:
                self._ahead[each] = self._wanted(self._paths[each])
        tail = self._ahead.pop(number).result()
        if isinstance(tail, str):
            return tail
        answer = self._reader.ask(tail)
        return answer.error or self._made(self._paths[number], answer, tail)


def _require_answer(_pid: int, passed: float, _busy: float) -> None:
    if passed > _SECONDS_MAX:
        raise InfrastructureError(
            f"the process that reads footers has not answered for {_SECONDS_MAX:g} s"
        )
