"""Dead letters: rows that cannot be trained on, as JSON lines with the reason.

Data executors send them with the frames that count their rows. The trainer appends them to one file
below the folder of the window; a seal holds how long it is, and what came after it is cut off when
the window is continued. At the window's end the file goes to the store.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import Field, ValidationError
from pydantic_core import from_json

from forebay.datatasks.tasks import DataTask, DeadRow
from forebay.executors.wire.messages import Letter
from forebay.system.files.durable import PRIVATE, make_folder, sync, sync_name, writing
from forebay.system.files.locks import closed_after
from forebay.system.message import Kept, Message
from forebay.system.output.redaction import redacted

# Below the folder in which a window is trained.
DEAD_FOLDER = "dead"
LETTERS_NAME = "letters.jsonl"
_REASON_MAX = 1000
_ROW_MAX = 8000


class DeadLetter(Kept):
    """One line. `row` is the row as far as it could be read; `rows` > 1 for a whole range.

    location: empty where it stands for rows that have no letters.
    """

    source: str
    window: str
    generation: int
    location: dict[str, str | int]
    reason: str
    row: object = None
    rows: int = 1


def letter_line(task: DataTask, dead: DeadRow) -> str:
    return DeadLetter(
        source=task.source,
        window=task.window,
        generation=task.generation,
        location=dead.location,
        reason=redacted(dead.reason)[:_REASON_MAX],
        row=_row(dead.row),
        rows=dead.rows,
    ).model_dump_json()


class SealedLetters(Message):
    """By source: the bytes of its letters, and how many rows have none."""

    kept: dict[str, int] = Field(default_factory=dict)
    left_out: dict[str, int] = Field(default_factory=dict)


class LetterFile:
    """Letters of rows that were used, in the trainer. They hold rows: a private file."""

    def __init__(
        self, window_folder: Path, bytes_max: Mapping[str, int], sealed: SealedLetters
    ) -> None:
        """Cut off what came after a seal.

        bytes_max: by source; once its letters have reached it, rows are only counted.
        """
        self._path = window_folder / DEAD_FOLDER / LETTERS_NAME
        self._bytes_max = bytes_max
        self._kept, self._left_out = Counter(sealed.kept), Counter(sealed.left_out)
        with writing(self._path):
            size = self._kept.total()
            if self._path.exists() and self._path.stat().st_size > size:
                os.truncate(self._path, size)

    def append(self, letters: Sequence[Letter]) -> None:
        """Once this returned, they outlive this process; see `sealed`.

        Raises:
            InfrastructureError: when they cannot be written.
        """
        lines: list[bytes] = []
        for letter in letters:
            source = letter.source
            if letter.line and self._kept[source] < self._bytes_max[source]:
                lines.append(letter.line.encode() + b"\n")
                self._kept[source] += len(lines[-1])
            else:
                self._left_out[source] += letter.rows
        self._write(b"".join(lines))

    def sealed(self) -> SealedLetters:
        """What a seal says of the letters so far, which are durable on return."""
        if self._kept.total():
            sync(self._path)
            sync_name(self._path)
        return SealedLetters(kept=self._kept, left_out=self._left_out)

    def end(self, window: str, generation: int) -> None:
        """Add a letter for the rows of each source that have none."""
        for source, rows in self._left_out.items():
            reason = (
                "not kept: the source's dead letters have reached "
                f"{self._bytes_max[source]:,} bytes in this window (dead_letter_bytes_max)"
            )
            whose = {"source": source, "window": window, "generation": generation, "location": {}}
            letter = DeadLetter.model_validate({**whose, "reason": reason, "rows": rows})
            self._write(letter.model_dump_json().encode() + b"\n")

    def _write(self, lines: bytes) -> None:
        if not lines:
            return
        with writing(self._path):
            make_folder(self._path.parent)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            with closed_after(os.open(self._path, flags, PRIVATE)) as descriptor:
                while lines:
                    lines = lines[os.write(descriptor, lines) :]


def read_letters(folder: Path) -> Iterator[DeadLetter]:
    """The letters of a folder, of the store or of a window in training.

    A line that is being written, or was cut off by a crash, is skipped.
    """
    if (folder / LETTERS_NAME).exists():
        with (folder / LETTERS_NAME).open("rb") as stream:
            for line in stream:
                with suppress(ValidationError):
                    yield DeadLetter.model_validate_json(line)


def _row(text: str | None) -> object:
    """A row as JSON if a letter that holds it can be read again, otherwise its text."""
    if text is None or len(text) > _ROW_MAX:
        return None if text is None else text[:_ROW_MAX]
    try:
        row = json.loads(text)
        # Too deep nesting cannot be read, and half of a surrogate pair is not text.
        from_json(json.dumps({"row": row}))
    except (ValueError, RecursionError):
        return text
    return row
