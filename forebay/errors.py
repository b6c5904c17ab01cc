"""The exception tree, split by what the person who sees the error should do next.

Each class carries the exit code of the command line: 1 your YAML, 2 data not ready, 3 data bad,
4 infrastructure. A class docstring is the default message.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

__all__ = [
    "ConfigError",
    "DataError",
    "ExportError",
    "FencedError",
    "ForebayError",
    "InfrastructureError",
    "LineBusyError",
    "MissingExtraError",
    "NotKnownError",
    "NotReadyError",
    "RowsLostError",
    "TrainingError",
    "UsageError",
]


class ForebayError(Exception):
    """Forebay could not continue."""

    exit_code: ClassVar[int] = 4

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__class__.__doc__ or "").strip())


class ConfigError(ForebayError):
    """The declaration is wrong: change the YAML and run `forebay check`."""

    exit_code = 1


class UsageError(ConfigError):
    """The command was called with values that do not fit together."""


class NotReadyError(ForebayError):
    """Data of a window is not complete yet: wait, or change the source's `ready` policy."""

    exit_code = 2


class DataError(ForebayError):
    """Stored data is bad: repair it, or let the source's policy send bad rows to dead letters."""

    exit_code = 3


class RowsLostError(DataError):
    """Rows planned, served and trained do not agree."""


class TrainingError(DataError):
    """The model cannot learn from this data (for example a loss that is not finite)."""


class InfrastructureError(ForebayError):
    """A process, port, disk or broker failed: the same command can be run again."""

    exit_code = 4


class MissingExtraError(ConfigError):
    """An optional dependency is not installed: to try again without it does not help."""


class LineBusyError(InfrastructureError):
    """Another job is training this model line: wait until it ends, or cancel it."""


class ExportError(InfrastructureError):
    """An exported model does not give the same scores as the trained one."""


class FencedError(InfrastructureError):
    """A newer attempt owns this job or lease; the older one must stop."""


class NotKnownError(InfrastructureError):
    """The driver does not know the caller or its session (it may have been restarted)."""


# The only table of exit codes: the class follows from what the user should do next.
BY_EXIT_CODE: Mapping[int, type[ForebayError]] = MappingProxyType(
    {kind.exit_code: kind for kind in (ConfigError, NotReadyError, DataError, InfrastructureError)}
)


def error_of(exit_code: int, message: str, name: str = "") -> ForebayError:
    """The exception for an exit code that came from another process.

    exit_code: any other code (a signal, a crash) counts as infrastructure. name: the exception's
    class name if known; names from other packages are ignored.
    """
    known = globals().get(name)
    if isinstance(known, type) and issubclass(known, ForebayError):
        return known(message)
    return BY_EXIT_CODE.get(exit_code, InfrastructureError)(message)
