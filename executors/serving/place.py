"""ServingPlace: what is done to a serving path, whether it is a folder or in a bucket."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

MODEL = "saved_model.pb"  # a model server takes a folder for a model once this is in it


class ServingPlace(ABC):
    """One serving path, for one writer at a time and any number of readers.

    Each method raises InfrastructureError when the path cannot be written, or not be reached in
    time; the error names it. url: for people.
    """

    url: str

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """A file beside the models; None if it is not there."""

    @abstractmethod
    def write(self, name: str, content: bytes) -> None:
        """Replace a file beside the models in one step; on return it is durable."""

    @abstractmethod
    def integers(self) -> dict[int, bool]:
        """Each PATH/INTEGER/, and whether its model is whole."""

    @abstractmethod
    def put(self, integer: int, source: Path) -> None:
        """Write a model, `saved_model.pb` last; on return it is durable.

        Called again after a kill, it replaces what was left.
        """

    @abstractmethod
    def remove(self, integer: int) -> None:
        """Remove a model: no reader finds half of it, whenever this process dies."""


def integer_of(name: str) -> int | None:
    """The integer that a name is, as a model server reads it."""
    return int(name) if name.isascii() and name.isdecimal() and str(int(name)) == name else None
