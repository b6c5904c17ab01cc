"""A child process that answers calls over pipes, and that a call may crash."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO


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
        return cls(process, calls, answers)

    def call(self, content: bytes) -> None:
        """Write all of a call; if the child has ended, its exit explains what was not written."""
        with suppress(BrokenPipeError):
            while content:
                content = content[os.write(self.calls, content) :]

    def close(self) -> None:
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()
        os.close(self.calls)
        os.close(self.answers)
