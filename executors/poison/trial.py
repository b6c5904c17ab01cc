"""A trial: the data executor's side of a child process that reads a task and may die of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress

from pydantic import ValidationError

from forebay.datatasks.sources.common.cautious.child import ChildDiedError, ReadingChild
from forebay.datatasks.sources.common.cautious.read_units import Poison, whole_ranges
from forebay.datatasks.sources.common.cautious.search import ReaderDiedError
from forebay.datatasks.tasks import DataTask, Position, ReadUnit
from forebay.executors.poison.trial_reader import MODULE, TrialCall, TrialReply
from forebay.system.liveness import progressed
from forebay.system.memory import available_bytes
from forebay.system.processes.ends import CRASHES, was_killed
from forebay.system.processes.identity import memory_bytes
from forebay.system.processes.parent import PARENT_PID_NAME

_GIB = 1 << 30
# A child that computes for this part of its time is reading something that never ends. Storage that
# does not answer costs no CPU time, and starting the child takes a few seconds.
_BUSY_PART, _BUSY_SECONDS_MIN = 0.3, 10.0
# On a busy machine it takes longer to get there, so it gets a multiple of its time.
_IDLE_PART, _PATIENCE = 0.05, 5
# A write past an Arrow buffer ends the process when the buffer is freed, not at some later unit.
_CHECKED_MEMORY = {"ARROW_DEBUG_MEMORY_POOL": "abort"}


class TrialInVainError(Exception):
    """The trial shows nothing: the child does not answer, or ended for an unrelated reason."""


class Trial:
    """Reads parts of one task in a child, and starts another when it dies. For one thread."""

    def __init__(
        self,
        arguments: Sequence[str],
        task: DataTask,
        chunk_rows: int,
        poisons: list[Poison],
        deadline_seconds: float,
        *,
        crashed: bool,
        memory_bytes: int | None = None,
    ) -> None:
        """arguments: with these the child finds its link.

        chunk_rows: as the process that died has read it. deadline_seconds: for one answer.

        poisons: known ones of the task: they are left out. May grow.
        crashed: whether a crash is looked for. If not, the process was killed, perhaps by the
        kernel when memory ran out.
        memory_bytes: what a child may take; by default half of what is free, at least 1 GiB.
        """
        self._call = TrialCall(task=task, first=Position(0, 0), chunk_rows=chunk_rows)
        self._poisons = poisons
        self._deadline = deadline_seconds
        self._crashed = crashed
        free = available_bytes()
        self._memory = memory_bytes or max(_GIB, free // 2)
        # Then the kernel may end a child that takes no more than it may.
        self._is_tight = free < self._memory
        command = [sys.executable, "-P", "-m", MODULE, *arguments]
        environment = {**os.environ, **_CHECKED_MEMORY, PARENT_PID_NAME: str(os.getpid())}
        self._child = ReadingChild("a trial reader", command, environment, self._watch)
        self._blind = False

    def units(self, position: Position, count: int) -> list[ReadUnit]:
        """The next units of the task; row ranges if even looking for smaller ones kills.

        Raises:
            InfrastructureError: when no child can be started.
            TrialInVainError: when nothing can be known.
        """
        if not self._blind:
            call = {"first": position, "units": count}
            with suppress(ReaderDiedError):
                reply = self._answered(self._call.model_copy(update=call))
                if not reply.error:
                    return list(reply.units)
            self._blind = True
        return list(whole_ranges(self._call.task, position))[:count]

    def read(self, first: Position, end: Position) -> int:
        """Read rows [first, end) of the task; how many there were.

        Raises:
            InfrastructureError: when no child can be started.
            ReaderDiedError: when the child dies of it.
            TrialInVainError: when nothing can be known.
        """
        call = {"first": first, "end": end, "poisons": tuple(self._poisons)}
        return self._answered(self._call.model_copy(update=call)).rows

    def close(self) -> None:
        self._child.close()

    def _answered(self, call: TrialCall) -> TrialReply:
        try:
            line = self._child.answer(call.model_dump_json().encode() + b"\n")
        except ChildDiedError as death:
            reason = f"the process that read it {death}"
            is_crash = death.number in CRASHES
            if not is_crash and (self._crashed or (self._is_tight and was_killed(death.number))):
                raise TrialInVainError(reason) from death
            raise ReaderDiedError(reason, is_crash=is_crash) from death
        progressed()
        try:
            return TrialReply.model_validate_json(line)
        except ValidationError as error:
            reason = f"the answer of the process that read it cannot be understood: {error}"
            raise TrialInVainError(reason) from error

    def _watch(self, pid: int, passed: float, busy: float) -> None:
        """Of a child that is late: at once if it waits, otherwise after much CPU time."""
        if memory_bytes(pid) > self._memory:
            raise self._ended(f"reading it takes more than {self._memory / _GIB:.1f} GiB of memory")
        if passed <= self._deadline:
            return
        if busy >= max(_BUSY_SECONDS_MIN, _BUSY_PART * self._deadline):
            raise self._ended(f"reading it takes more than {busy:.0f} s of CPU time")
        if busy < _IDLE_PART * passed or passed > _PATIENCE * self._deadline:
            raise TrialInVainError(f"no answer for {passed:.0f} s")
        progressed()

    def _ended(self, reason: str) -> ReaderDiedError | TrialInVainError:
        """Why this process ends the child, which explains no crash."""
        if self._crashed:
            return TrialInVainError(reason)
        return ReaderDiedError(reason, is_crash=False)
