"""Claims of a window: which generation was decided on for whoever asked under a tag.

A tag stands for one asking: the first call with it decides the generation, and every later one
gets the same, so that what is asked again after a crash is trained once. The file lies in the
window's folder of the ledger and goes with it when the window is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from forebay.datatasks.ledger import Ledger
from forebay.errors import DataError
from forebay.system.files import disk, write_file
from forebay.system.message import Message

CLAIMS_NAME = "claims.json"
CLAIMS_MAX = 64


class _ClaimsFile(Message):
    """Generations by tag, the oldest claim first."""

    claims: dict[str, int]


class Claims:
    """Claims of one window. Whoever decides holds a lock: the file has none of its own."""

    def __init__(self, ledger: Ledger, window: str) -> None:
        """Nothing is read yet."""
        self._path: Path = ledger.folder / window / CLAIMS_NAME

    def generation(self, tag: str) -> int | None:
        """What was decided for a tag; None where nothing was."""
        return self._read().get(tag)

    def record(self, tag: str, generation: int) -> None:
        """Store a decision. The oldest go where there would be more than `CLAIMS_MAX`."""
        claims = {**self._read(), tag: generation}
        kept = dict(list(claims.items())[-CLAIMS_MAX:])
        with disk(self._path):
            write_file(self._path, _ClaimsFile(claims=kept).model_dump_json(indent=1).encode())

    def _read(self) -> Mapping[str, int]:
        try:
            return _ClaimsFile.model_validate_json(self._path.read_bytes()).claims
        except FileNotFoundError:
            return {}
        except ValidationError as error:
            raise DataError(f"{self._path} is damaged: move it away and run again") from error
