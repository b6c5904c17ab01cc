"""How a role process ends: exit code by remedy, and a file that says why.

The file `failures/<role>-<index>.json` is what a supervisor shows as the job's error.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from forebay.errors import (
    ConfigError,
    DataError,
    ExportError,
    ForebayError,
    InfrastructureError,
    LineBusyError,
    MissingExtraError,
    NotReadyError,
)
from forebay.executors.files import write_atomically
from forebay.system.message import Message
from forebay.system.processes import started_by_supervisor

# A role whose body ended may have threads that do not: it gets this long to close them.
EXIT_GRACE_SECONDS = 10.0
_LOG = logging.getLogger(__name__)


class RoleFailure(Message):
    """Why a process failed.

    error: the exception's class name. exit_code: by remedy, as in `forebay.errors`. final: a
    restart would end the same way (a missing package, a bug), so the job ends at once.
    """

    error: str
    message: str
    exit_code: int
    final: bool = False

    @classmethod
    def of(cls, error: BaseException) -> RoleFailure:
        """Describe an exception; one that is not ours counts as infrastructure (4)."""
        if isinstance(error, ForebayError):
            return cls(
                error=type(error).__name__,
                message=str(error),
                exit_code=error.exit_code,
                final=isinstance(error, (ExportError, MissingExtraError)),
            )
        name = type(error).__name__
        return cls(
            error=name,
            message=f"{name}: {error}" if str(error) else name,
            exit_code=InfrastructureError.exit_code,
            # Memory and disks come back; a programming error does not go away.
            final=not isinstance(error, (OSError, MemoryError)),
        )

    def exception(self) -> ForebayError:
        """The exception with this exit code, for whoever answers for the job."""
        if self.error == LineBusyError.__name__:
            return LineBusyError(self.message)
        for kind in (ConfigError, NotReadyError, DataError):
            if kind.exit_code == self.exit_code:
                return kind(self.message)
        return InfrastructureError(self.message)


def failure_path(job_dir: Path, role: str, index: int) -> Path:
    """Where a process writes its failure."""
    return job_dir / "failures" / f"{role}-{index}.json"


def read_failure(job_dir: Path, role: str, index: int) -> RoleFailure | None:
    """The failure that a process wrote before it ended, if any."""
    path = failure_path(job_dir, role, index)
    return RoleFailure.model_validate_json(path.read_text()) if path.is_file() else None


@contextmanager
def role_exit(role: str, index: int, job_dir: Path) -> Iterator[None]:
    """Run a role's body; turn an exception into the failure file and the exit code.

    A process that a supervisor started ends at the latest `EXIT_GRACE_SECONDS` after its body,
    whatever threads are left. SystemExit and KeyboardInterrupt pass unchanged.

    Raises:
        SystemExit: with the code of the remedy, after an error.
    """
    try:
        yield
    except Exception as error:
        failure = RoleFailure.of(error)
        _LOG.exception("%s-%d fails (exit code %d)", role, index, failure.exit_code)
        _write(failure_path(job_dir, role, index), failure)
        _end_soon(failure.exit_code)
        raise SystemExit(failure.exit_code) from error
    _end_soon(0)


def end_at_once() -> None:
    """End a role well whose work is done and durable, if a supervisor started it.

    Python needs a second to take TensorFlow apart, which nobody has any use for.
    """
    if started_by_supervisor():
        _end_now(0)


def _write(path: Path, failure: RoleFailure) -> None:
    try:
        write_atomically(path, failure.model_dump_json())
    except OSError:
        # A full disk must not hide the exit code; the supervisor then names code and log.
        _LOG.exception("cannot write %s", path)


def _end_soon(exit_code: int) -> None:
    if not started_by_supervisor():
        return
    timer = threading.Timer(EXIT_GRACE_SECONDS, _end_late, [exit_code])
    timer.daemon = True
    timer.start()


def _end_late(exit_code: int) -> None:
    _LOG.error(
        "threads still run %s s after the end: %s",
        EXIT_GRACE_SECONDS,
        ", ".join(thread.name for thread in threading.enumerate() if not thread.daemon),
    )
    _end_now(exit_code)


def _end_now(exit_code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)
