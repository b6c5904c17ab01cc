"""Dead letters: rows that cannot be trained on, as JSON lines with the reason.

While a window is trained, data executors append them to a file for each task. A line is on disk
before the frame that counts its row is sent. A task that is read again may write a line again: of
each location, the first line counts. At the window's end they are gathered in one file for the
store.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from forebay.datatasks.tasks import DataTask, DeadRow
from forebay.errors import InfrastructureError
from forebay.system.files import PRIVATE, append_lines, new_file, writing
from forebay.system.message import Message
from forebay.system.redaction import redacted

# Below the folder in which a window is trained.
DEAD_FOLDER = "dead"
_GATHERED_NAME = "letters.jsonl"


class DeadLetter(Message):
    """One line. `row` is the row as far as it could be read; `rows` > 1 for a whole range."""

    source: str
    window: str
    generation: int
    location: dict[str, str | int]
    reason: str
    row: object = None
    rows: int = 1


class DeadLetterWriter:
    """Appends the dead letters of one (line, window, generation). They hold rows: private files."""

    def __init__(self, window_folder: Path) -> None:
        """Use `<window_folder>/dead`, which is made with the first letter."""
        self._window_folder = window_folder

    def write(self, task: DataTask, dead: Sequence[DeadRow]) -> None:
        """Append rows of one task.

        Raises:
            InfrastructureError: when the disk does not take them, or the window is not trained in
                this folder, or not any more.
        """
        if not dead:
            return
        if not self._window_folder.is_dir():
            # An executor that slept past its lease must not begin what nobody will gather.
            raise InfrastructureError(
                f"{self._window_folder} is gone, so its dead letters cannot be kept: window "
                f"{task.window} was trained to its end, or its trainer has another FOREBAY_HOME"
            )
        name = task.task_id.replace("/", "-")
        lines = "".join(_letter(task, row).model_dump_json() + "\n" for row in dead)
        append_lines(self._window_folder / DEAD_FOLDER / f"{name}.jsonl", lines, PRIVATE)


def read_letters(window_folder: Path) -> Iterator[DeadLetter]:
    """Every dead letter of a window that is being trained, once."""
    for _, letter in _unique_lines(window_folder):
        yield letter


def gather_letters(window_folder: Path, target: Path) -> Counter[str]:
    """Write every dead letter once into a folder for the store; without one, make none.

    What a process that died left in the folder is removed. The copy is nobody else's: whoever is
    late with a letter does not change it.

    Returns:
        How many rows they stand for, by source.

    Raises:
        InfrastructureError: when the disk does not take them.
    """
    with writing(target):
        if target.exists():
            shutil.rmtree(target)
    rows: Counter[str] = Counter()
    lines = _unique_lines(window_folder)
    first = next(lines, None)
    if first is None:
        return rows
    with new_file(target / _GATHERED_NAME, PRIVATE) as stream:
        for line, letter in itertools.chain([first], lines):
            stream.write(line + b"\n")
            rows[letter.source] += letter.rows
    return rows


def gathered_letters(folder: Path) -> Iterator[DeadLetter]:
    """The dead letters of a folder that `gather_letters` wrote."""
    with (folder / _GATHERED_NAME).open("rb") as stream:
        for line in stream:
            yield DeadLetter.model_validate_json(line)


def _unique_lines(window_folder: Path) -> Iterator[tuple[bytes, DeadLetter]]:
    """Lines with what they say. A line that was cut by a crash is passed over."""
    for path in sorted((window_folder / DEAD_FOLDER).glob("*.jsonl")):
        seen: set[str] = set()
        with path.open("rb") as stream:
            for line in map(bytes.rstrip, stream):
                letter = _parsed(line)
                if letter is None:
                    continue  # the process died while it wrote; the row was read and written again
                key = json.dumps(letter.location, sort_keys=True)
                if key not in seen:
                    seen.add(key)
                    yield line, letter


def _letter(task: DataTask, dead: DeadRow) -> DeadLetter:
    return DeadLetter(
        source=task.source,
        window=task.window,
        generation=task.generation,
        location=dead.location,
        reason=redacted(dead.reason),
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
