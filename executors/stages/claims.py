"""Claims of a window: which generation was decided for the caller who came with a tag.

A tag stands for one request of one run. The first call with it decides the generation, and every
later one gets the same, so that a request that is repeated after a crash is trained once. The file
is stored in the window's folder of the ledger and is removed with it when the window is forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from forebay.datatasks.ledger import Ledger
from forebay.system.files import write_atomically
from forebay.system.locks import locked
from forebay.system.message import Message

CLAIMS_NAME = "claims.json"
CLAIMS_MAX = 64
_LOCK_NAME = ".claims.lock"
# A decision under the lock copies a window's manifests at most.
_LOCK_SECONDS = 60.0


class _ClaimsFile(Message):
    """Generations by tag, the oldest claim first."""

    claims: dict[str, int]


class Claims:
    """Claims of one window. `record` is called with the lock held."""

    def __init__(self, ledger: Ledger, window: str) -> None:
        """Nothing is read yet."""
        self._path: Path = ledger.folder / window / CLAIMS_NAME
        self._lock: Path = ledger.folder / _LOCK_NAME

    def lock(self) -> AbstractContextManager[None]:
        """Held while a generation is decided; one for all windows of the pipeline.

        Raises:
            InfrastructureError: when another process holds it for a minute.
        """
        return locked(self._lock, _LOCK_SECONDS)

    def generation(self, tag: str) -> int | None:
        """What was decided for a tag; None where nothing was."""
        return self._read().get(tag)

    def record(self, tag: str, generation: int) -> None:
        """Store a decision. The oldest are dropped where there would be more than `CLAIMS_MAX`."""
        claims = {**self._read(), tag: generation}
        kept = dict(list(claims.items())[-CLAIMS_MAX:])
        write_atomically(self._path, _ClaimsFile(claims=kept).model_dump_json(indent=1))

    def _read(self) -> Mapping[str, int]:
        found = _ClaimsFile.of_file(self._path)
        return found.claims if found else {}
