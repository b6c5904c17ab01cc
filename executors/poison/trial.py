"""A trial: the data executor's side of a child process that reads a task and may die of it."""

from __future__ import annotations

import os
import select
import sys
import time
from contextlib import suppress
from pathlib import Path

from forebay.datatasks.sources.common.rows.read_units import Poison, whole_ranges
from forebay.datatasks.tasks import DataTask, Position, ReadUnit
from forebay.errors import InfrastructureError
from forebay.executors.poison.trial_reader import MODULE, TrialCall, TrialReply
from forebay.system.liveness import progressed
from forebay.system.memory import available_bytes
from forebay.system.processes.children import PipedProcess
from forebay.system.processes.ends import CRASHES, how_it_ended
from forebay.system.processes.identity import cpu_seconds, memory_bytes
from forebay.system.processes.parent import PARENT_PID_NAME

_LOOK_MS = 50
_GIB = 1 << 30
_PART_BYTES = 1 << 16
# A child that computes for this part of its time is reading something that never ends. Storage that
# does not answer costs no CPU time, and starting the child takes a few seconds.
_BUSY_PART, _BUSY_SECONDS_MIN = 0.3, 10.0
# On a busy machine it takes longer to get there, so it gets a multiple of its time.
_IDLE_PART, _PATIENCE = 0.05, 5
# A write past an Arrow buffer ends the process when the buffer is freed, not at some later unit.
_CHECKED_MEMORY = {"ARROW_DEBUG_MEMORY_POOL": "abort"}


class TrialDiedError(Exception):
    """The child died. `is_certain`: because of what it has just read, and nothing else.

    It is not certain if the child had read something before, or if something else killed it: the
    kernel kills a victim when memory runs out, whichever process took it, and this process kills
    a child that takes too much memory or time.
    """

    def __init__(self, reason: str, *, is_certain: bool) -> None:
        super().__init__(reason)
        self.is_certain = is_certain


class TrialInVainError(Exception):
    """The trial shows nothing: the child does not answer, or ended for an unrelated reason."""


class Trial:
    """Reads parts of one task in a child, and starts another when it dies. For one thread."""

    def __init__(
        self,
        job_dir: Path,
        task: DataTask,
        chunk_rows: int,
        poisons: list[Poison],
        deadline_seconds: float,
        *,
        crashed: bool,
        memory_bytes: int | None = None,
    ) -> None:
        """chunk_rows: as the process that died has read it. deadline_seconds: for one answer.

        poisons: known ones of the task: they are left out. May grow.
        crashed: whether a crash is looked for. If not, the process was killed, perhaps by the
        kernel when memory ran out.
        memory_bytes: what a child may take; by default half of what is free, at least 1 GiB.
        """
        self._job_dir = job_dir
        self._call = TrialCall(task=task, first=Position(0, 0), chunk_rows=chunk_rows)
        self._poisons = poisons
        self._deadline = deadline_seconds
        self._crashed = crashed
        self._memory = memory_bytes or max(_GIB, available_bytes() // 2)
        self._child: PipedProcess | None = None
        self._is_fresh = True
        self._blind = False

    def units(self, position: Position, count: int) -> list[ReadUnit]:
        """The next units of the task; row ranges if even looking for smaller ones kills.

        Raises:
            InfrastructureError: when no child can be started.
            TrialInVainError: when nothing can be known.
        """
        if not self._blind:
            call = {"first": position, "units": count}
            with suppress(TrialDiedError):
                reply = self._answered(self._call.model_copy(update=call))
                if not reply.error:
                    return list(reply.units)
            self._blind = True
        return list(whole_ranges(self._call.task, position))[:count]

    def read(self, first: Position, end: Position) -> int:
        """Read rows [first, end) of the task; how many there were.

        Raises:
            InfrastructureError: when no child can be started.
            TrialDiedError: when the child dies of it.
            TrialInVainError: when nothing can be known.
        """
        call = {"first": first, "end": end, "poisons": tuple(self._poisons)}
        rows = self._answered(self._call.model_copy(update=call)).rows
        self._is_fresh = False
        return rows

    def close(self) -> None:
        """End the child; what is read next is read by another one."""
        child, self._child = self._child, None
        if child is not None:
            child.close()

    def _started(self) -> PipedProcess:
        if self._child is None:
            command = [sys.executable, "-P", "-m", MODULE, "--job", str(self._job_dir)]
            environment = {**os.environ, **_CHECKED_MEMORY, PARENT_PID_NAME: str(os.getpid())}
            self._is_fresh = True
            try:
                self._child = PipedProcess.started(command, environment)
            except OSError as error:
                raise InfrastructureError(f"a trial reader cannot be started: {error}") from error
        return self._child

    def _answered(self, call: TrialCall) -> TrialReply:
        child = self._started()
        child.call(call.model_dump_json().encode() + b"\n")
        line = self._line(child)
        progressed()
        return TrialReply.model_validate_json(line)

    def _line(self, child: PipedProcess) -> bytes:
        began, before = time.monotonic(), cpu_seconds(child.process.pid)
        poller = select.poll()
        poller.register(child.answers, select.POLLIN)
        line = b""
        while not line.endswith(b"\n"):
            if poller.poll(_LOOK_MS):
                found = os.read(child.answers, _PART_BYTES)
                if not found:
                    raise self._death(child)
                line += found
            elif memory_bytes(child.process.pid) > self._memory:
                self.close()
                gib = self._memory / _GIB
                raise self._died(f"reading it takes more than {gib:.1f} GiB of memory")
            elif (passed := time.monotonic() - began) > self._deadline:
                self._require_busy(passed, cpu_seconds(child.process.pid) - before)
        return line

    def _require_busy(self, passed: float, busy: float) -> None:
        """End a child that is late: at once if it waits, otherwise after much CPU time."""
        if busy >= max(_BUSY_SECONDS_MIN, _BUSY_PART * self._deadline):
            self.close()
            raise self._died(f"reading it takes more than {busy:.0f} s of CPU time")
        if busy < _IDLE_PART * passed or passed > _PATIENCE * self._deadline:
            self.close()
            raise TrialInVainError(f"no answer for {passed:.0f} s")
        progressed()

    def _death(self, child: PipedProcess) -> Exception:
        code = child.process.wait()
        self.close()
        if code >= 0:
            return InfrastructureError(
                f"a trial reader ended with exit code {code}: its reason is in this process's log"
            )
        reason = f"the process that read it {how_it_ended(code)}"
        return self._died(reason, by_itself=-code in CRASHES)

    def _died(self, reason: str, *, by_itself: bool = False) -> TrialDiedError | TrialInVainError:
        if self._crashed and not by_itself:
            return TrialInVainError(reason)
        return TrialDiedError(reason, is_certain=self._is_fresh and by_itself)
