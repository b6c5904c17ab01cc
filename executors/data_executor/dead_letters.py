"""Dead letters: rows that cannot be trained on, as JSON lines with the reason.

A line is on disk before the frame that counts its row is sent. A task that is read again may
write a line again: readers drop lines of a location that they have seen.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from forebay.datatasks.tasks import DataTask, DeadRow
from forebay.home.paths import Home
from forebay.system.files import append_lines
from forebay.system.message import Message


class DeadLetter(Message):
    """One line. `row` is the row as far as it could be read; `rows` > 1 for a whole range."""

    source: str
    window: str
    generation: int
    location: dict[str, str | int]
    reason: str
    row: object = None
    rows: int = 1


def letters_folder(home: Home, pipeline: str, window: str, generation: int) -> Path:
    """Where the dead letters of one trained window are stored."""
    return home.dead_letters(pipeline) / window / f"g{generation}"


class DeadLetterWriter:
    """Appends the dead letters of one (window, generation)."""

    def __init__(self, folder: Path) -> None:
        """`folder` is made with the first letter."""
        self._folder = folder

    def write(self, task: DataTask, dead: Sequence[DeadRow]) -> None:
        """Append rows of one task.

        Raises:
            InfrastructureError: when the disk does not take them.
        """
        if not dead:
            return
        name = task.task_id.replace("/", "-")
        lines = "".join(_letter(task, row).model_dump_json() + "\n" for row in dead)
        append_lines(self._folder / f"{name}.jsonl", lines)


def read_letters(folder: Path) -> Iterator[DeadLetter]:
    """Every dead letter below a folder once. A line that was cut by a crash is passed over."""
    for path in sorted(folder.rglob("*.jsonl")):
        seen: set[str] = set()
        for line in path.read_bytes().splitlines():
            letter = _parsed(line)
            if letter is None:
                continue  # the process died while it wrote; the row was read and written again
            key = json.dumps(letter.location, sort_keys=True)
            if key not in seen:
                seen.add(key)
                yield letter


def _letter(task: DataTask, dead: DeadRow) -> DeadLetter:
    return DeadLetter(
        source=task.source,
        window=task.window,
        generation=task.generation,
        location=dead.location,
        reason=dead.reason,
        row=_row(dead.row),
        rows=dead.rows,
    )


def _row(text: str | None) -> object:
    if text is None:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text


def _parsed(line: bytes) -> DeadLetter | None:
    try:
        return DeadLetter.model_validate_json(line)
    except ValidationError:
        return None
