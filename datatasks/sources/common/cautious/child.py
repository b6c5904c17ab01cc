"""A child process that reads for this one and may die of it: calls go in, lines come out."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from forebay.errors import InfrastructureError
from forebay.system.processes.children import PipedProcess
from forebay.system.processes.ends import how_it_ended
from forebay.system.processes.identity import cpu_seconds

Watch = Callable[[int, float, float], None]
_LOOK_MS = 50
_PART_BYTES = 1 << 16
_SAID_MAX = 200


class ChildDiedError(Exception):
    """number: the signal that ended it. last_words: of its stderr, where that is kept."""

    def __init__(self, number: int, last_words: str) -> None:
        super().__init__(how_it_ended(-number))
        self.number = number
        self.last_words = last_words


class ReadingChild:
    """Started at its first call, and anew once it died or was closed. For one thread."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        watch: Watch,
        said: IO[bytes] | None = None,
    ) -> None:
        """watch: is told its process id, the seconds since the call and those of CPU time.

        It is asked whenever the child says nothing for a moment; what it raises ends the child.
        said: gets its stderr; by default it shares that of this process.
        """
        self._name, self._command, self._environment = name, command, environment
        self._watch, self._said = watch, said
        self._child: PipedProcess | None = None

    def answer(self, call: bytes) -> bytes:
        """The line that it says to a call.

        Raises:
            ChildDiedError: when a signal ends it.
            InfrastructureError: when it cannot be started, or ends for a reason of its own.
        """
        child = self._started()
        pid = child.process.pid
        began, before = time.monotonic(), None  # to ask for its CPU time costs more than a footer
        poller = select.poll()
        poller.register(child.answers, select.POLLIN)
        line = bytearray()
        try:
            child.call(call)
            while not line.endswith(b"\n"):
                if not poller.poll(_LOOK_MS):
                    busy = cpu_seconds(pid)
                    before = busy if before is None else before
                    self._watch(pid, time.monotonic() - began, busy - before)
                elif part := os.read(child.answers, _PART_BYTES):
                    line += part
                else:
                    raise self._death(child)
        except BaseException:
            self.close()
            raise
        return bytes(line)

    def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.close()

    def _started(self) -> PipedProcess:
        if self._child is None:
            if self._said is not None:  # what an earlier one said explains nothing of this one
                self._said.seek(0)
                self._said.truncate()
            try:
                self._child = PipedProcess.started(self._command, self._environment, self._said)
            except OSError as error:
                raise InfrastructureError(f"{self._name} cannot be started: {error}") from error
        return self._child

    def _death(self, child: PipedProcess) -> Exception:
        code, words = child.process.wait(), "its reason is in this process's log"
        if self._said is not None:
            self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - _SAID_MAX))
            lines = self._said.read().decode(errors="replace").strip()
            words = lines.rpartition("\n")[2].strip()
        if code < 0:
            return ChildDiedError(-code, "" if self._said is None else words)
        return InfrastructureError(f"{self._name} ended with exit code {code}: {words}")
