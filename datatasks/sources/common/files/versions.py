"""Versions of files: what planning saw of a file, compared with what is there when it is read.

A version is a text `SIZE|CHANGE=VALUE|footer=DIGEST`: the size in bytes, what the file system says
about the file's newest change (`mtime_ns`, an ETag, …), and for Parquet a digest of the footer.
What either side does not know is not compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from forebay.errors import DataError

FOOTER = "footer"
_NS = 1_000_000_000


def version_text(size: int, change: str = "", value: object = "") -> str:
    """The version of a file. `change` is what the file system calls its `value`."""
    return f"{size}|{change}={value}" if change else str(size)


def described(version: str) -> str:
    size, known = _parts(version)
    words = [f"{size} bytes"]
    for name, value in known.items():
        if name == "mtime_ns":
            seconds, rest = divmod(int(value), _NS)
            at = datetime.fromtimestamp(seconds, UTC)
            words.append(f"of {at:%Y-%m-%dT%H:%M:%S}.{rest:09d}Z")
        else:
            words.append(f"{name} {value}")
    return ", ".join(words)


def same_version(one: str, other: str) -> bool:
    """Whether two versions may be of the same content."""
    size, known = _parts(one)
    other_size, also = _parts(other)
    same = all(also.get(name, value) == value for name, value in known.items())
    return same and size == other_size


def _parts(version: str) -> tuple[int, dict[str, str]]:
    size, *rest = version.split("|")
    return int(size), dict(part.split("=", 1) for part in rest)


@dataclass(frozen=True)
class PlannedFile:
    """A file that is read as it was planned, or not at all.

    place: its full name. version: what was planned; where it is empty, nothing is compared.
    look: its version now.
    way_out: what a person does about a difference.
    """

    place: str
    version: str
    look: Callable[[], str]
    way_out: str

    def require_unchanged(self) -> None:
        """Look at the file: called before it is opened, and before its last rows are handed on.

        A file that was replaced keeps its old content for whoever has it open, so that reading
        alone would not see it.

        Raises:
            DataError: when it is another version than the planned one.
        """
        if self.version:
            self.require(self.look())

    def require_footer(self, digest: str) -> None:
        """Compare the footer of the file that was opened.

        Raises:
            DataError: when it is another one.
        """
        if self.version:
            size, _ = _parts(self.version)
            self.require(version_text(size, FOOTER, digest))

    def require(self, found: str) -> None:
        """Raise DataError when a version is another one than the planned one."""
        if not same_version(self.version, found):
            raise DataError(
                f"{self.place} was changed after it was planned: it had "
                f"{described(self.version)}, and now has {described(found)} ({self.way_out})"
            )


def plan_again(window: str) -> str:
    """The way out where storage lets files be replaced."""
    return f"run window {window} again: it is then planned from the file as it is now"
