"""The base of everything that crosses a process boundary as JSON, in a call or in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from forebay.errors import DataError


class Message(BaseModel):
    """Immutable; unknown fields are errors, so two versions never half understand each other.

    Light on purpose: whatever reads a file or a reply imports neither Arrow nor NumPy.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def of_file(cls, path: Path) -> Self | None:
        """The message that a file holds; None if there is no such file.

        Raises:
            DataError: when the file holds something else.
        """
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise DataError(
                f"{path} is damaged: restore it, or move it away and run again"
            ) from error

    @classmethod
    def of_document(cls, document: str, row: str) -> Self:
        """The message that a row of the database holds. row: its description for people.

        Raises:
            DataError: when it holds something else.
        """
        try:
            return cls.model_validate_json(document)
        except ValidationError as error:
            raise DataError(
                f"the database has a damaged row ({row}): restore the database from a backup"
            ) from error


class Kept(Message):
    """Stored for years: what another release added to it is left out."""

    model_config = ConfigDict(extra="ignore")
