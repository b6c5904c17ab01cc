"""Child processes of the calling process, and orphans that it adopted."""

from __future__ import annotations

import logging
import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from forebay.system.processes.identity import descendants, kill_all

_LOG = logging.getLogger(__name__)


class Children:
    """Starts children. Used from one thread."""

    def __init__(self) -> None:
        self._own: list[subprocess.Popen[bytes]] = []

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: IO[bytes],
        folder: Path | None = None,
        descriptors: Sequence[int] = (),
    ) -> subprocess.Popen[bytes]:
        """Start a child; the caller polls it.

        environment: all of it; nothing is inherited.
        log: gets stdout and stderr.
        folder: where it runs; by default where the caller does.
        descriptors: other open descriptors that it inherits, under the same numbers.

        Raises:
            OSError: when it cannot be started.
        """
        child = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=dict(environment),
            cwd=folder,
            pass_fds=descriptors,
        )
        self._own = [*self.unpolled(), child]
        return child

    def unpolled(self) -> list[subprocess.Popen[bytes]]:
        """Children that nobody has yet seen to have ended."""
        return [child for child in self._own if child.returncode is None]

    def reap_orphans(self) -> None:
        """Reap adopted processes that ended, and leave children to whoever polls them.

        For a process that starts children through this object alone. Orphans that ended after a
        child are reaped only once that child has been polled.
        """
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None or ended.si_pid in {child.pid for child in self.unpolled()}:
                return
            os.waitpid(ended.si_pid, 0)

    def end_orphans(self) -> None:
        """Kill the remaining descendants; call it only once all children have ended.

        Raises:
            InfrastructureError: when one of them does not end.
        """
        while left := descendants():
            kill_all(left)
        self.reap_orphans()


def wait_or_kill(child: subprocess.Popen[bytes], deadline: float, name: str) -> None:
    """Wait for a child that was asked to end; SIGKILL it at the deadline (monotonic seconds)."""
    try:
        child.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        _LOG.warning("%s did not end in time: killing it", name)
        child.kill()
        child.wait()


@dataclass(frozen=True)
class PipedProcess:
    """A child, with descriptors for writing calls (its stdin) and reading answers (its stdout)."""

    process: subprocess.Popen[bytes]
    calls: int
    answers: int

    @classmethod
    def started(
        cls, command: Sequence[str], environment: Mapping[str, str], errors: IO[bytes] | None = None
    ) -> PipedProcess:
        """Start it. errors: gets its stderr; by default it shares that of this process.

        Raises:
            OSError: when it cannot be started.
        """
        theirs_in, calls = os.pipe()
        answers, theirs_out = os.pipe()
        try:
            process = subprocess.Popen(
                command, stdin=theirs_in, stdout=theirs_out, stderr=errors, env=environment
            )
        except OSError:
            os.close(calls)
            os.close(answers)
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        os.set_blocking(calls, False)  # a child need not read
        return cls(process, calls, answers)

    def call(self, content: memoryview) -> memoryview:
        """Write what fits of a call, once some does; the rest of it.

        If the child reads no more, there is none: its exit explains what was not written.
        """
        try:
            return content[os.write(self.calls, content) :]
        except BrokenPipeError:
            return content[:0]

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.calls)
        os.close(self.answers)
