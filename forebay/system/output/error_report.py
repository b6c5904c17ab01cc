"""An error that crosses a process boundary, in a call or in a file."""

from __future__ import annotations

from forebay.errors import (
    ExportError,
    ForebayError,
    InfrastructureError,
    MissingExtraError,
    error_of,
)
from forebay.system.message import Message
from forebay.system.output.redaction import ShownText


class ErrorReport(Message):
    """Why a process or a task failed.

    error: the exception's class name. message: without secrets. exit_code: by remedy, as in
    `forebay.errors`. final: a restart would end the same way (a missing package, a bug), so a job
    ends at once.
    """

    error: str
    message: ShownText
    exit_code: int
    final: bool = False

    @classmethod
    def of(cls, error: BaseException) -> ErrorReport:
        """Describe an exception; one that is not ours counts as infrastructure (4)."""
        name, message = type(error).__name__, str(error)
        if isinstance(error, ForebayError):
            exit_code = error.exit_code
            final = isinstance(error, (ExportError, MissingExtraError))
        else:
            message = f"{name}: {message}" if message else name
            exit_code = InfrastructureError.exit_code
            # Memory and disks recover; a programming error does not go away.
            final = not isinstance(error, (OSError, MemoryError))
        return cls(error=name, message=message, exit_code=exit_code, final=final)

    def exception(self) -> ForebayError:
        """The exception that was reported, or one of ours with the same exit code."""
        return error_of(self.exit_code, self.message, self.error)
