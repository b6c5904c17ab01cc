"""Dead letters: rows that cannot be trained on, as JSON lines with the reason.

While a window is trained, data executors append them to a file for each task. A line is on disk
before the frame that counts its row is sent. A task that is read again may write a line again: the
first line of each location counts. At the window's end they are gathered in one file for the store.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import from_json

from forebay.config.specs.sources import DEAD_LETTER_BYTES_MAX
from forebay.datatasks.tasks import DataTask, DeadRow
from forebay.errors import InfrastructureError
from forebay.system.files.durable import PRIVATE, append_lines, new_file, writing
from forebay.system.message import Message
from forebay.system.output.redaction import redacted

_LOOKS = 64


class LetterSizes:
    """Sizes of the files below one folder, as this process last saw them, and what it added since.

    It looks again after it has added a small part of the bound itself: others may add as much.
    """

    def __init__(self, folder: Path) -> None:
        """Nothing is looked at yet. A file is named after a task: `source-number.jsonl`."""
        self._folder = folder
        self._seen: Counter[str] | None = None
        self._added: Counter[str] = Counter()
        self._lock = threading.Lock()

    def of(self, source: str, bytes_max: int) -> int:
        """Bytes of a source's letters; `bytes_max` decides how exact this has to be."""
        with self._lock:
            if self._seen is None or self._added[source] > bytes_max // _LOOKS:
                self._seen = self._look()
                self._added.clear()
            return self._seen[source] + self._added[source]

    def add(self, source: str, size: int) -> None:
        with self._lock:
            self._added[source] += size

    def _look(self) -> Counter[str]:
        found: Counter[str] = Counter()
        if self._folder.is_dir():
            with os.scandir(self._folder) as files:
                for each in files:
                    found[Path(each.name).stem.rpartition("-")[0]] += each.stat().st_size
        return found


# Below the folder in which a window is trained.
DEAD_FOLDER = "dead"
_GATHERED_NAME = "letters.jsonl"
_REASON_MAX = 1000
_ROW_MAX = 8000


class DeadLetter(Message):
    """One line. `row` is the row as far as it could be read; `rows` > 1 for a whole range.

    number: how many dead rows of the same task come before it. left_out: it represents rows that
    have no letters.
    """

    source: str
    window: str
    generation: int
    location: dict[str, str | int]
    reason: str
    row: object = None
    rows: int = 1
    number: int | None = None
    left_out: bool = False


class DeadLetterWriter:
    """Appends the dead letters of one (line, window, generation). They hold rows: private files."""

    def __init__(self, window_folder: Path, bytes_max: Mapping[str, int] | None = None) -> None:
        """Use `<window_folder>/dead`, which is made with the first letter.

        bytes_max: of the letters of each source. Several writers at the same time may each exceed
        it by a small part.
        """
        self._window_folder = window_folder
        self._bytes_max = bytes_max or {}
        self._sizes = LetterSizes(window_folder / DEAD_FOLDER)

    def write(self, task: DataTask, dead: Sequence[DeadRow], before: int = 0) -> None:
        """Append rows of one task, which has that many dead rows before these.

        Raises:
            InfrastructureError: when they cannot be written, or the window is not, or no longer,
                trained in this folder.
        """
        if not dead:
            return
        if not self._window_folder.is_dir():
            # An executor that slept past its lease must not write what will never be gathered.
            raise InfrastructureError(
                f"{self._window_folder} is gone, so its dead letters cannot be kept: window "
                f"{task.window} was trained to its end, or its trainer has another FOREBAY_HOME"
            )
        most = self._bytes_max.get(task.source, DEAD_LETTER_BYTES_MAX)
        lines = _lines(task, dead, before, most, self._sizes.of(task.source, most))
        name = task.task_id.replace("/", "-")
        append_lines(self._window_folder / DEAD_FOLDER / f"{name}.jsonl", lines, PRIVATE)
        self._sizes.add(task.source, len(lines.encode()))


def read_letters(window_folder: Path) -> Iterator[DeadLetter]:
    """Every dead letter of a window that is being trained, once."""
    for _, letter in _unique_lines(window_folder):
        yield letter


def gather_letters(window_folder: Path, target: Path) -> Counter[str]:
    """Write every dead letter once into a folder for the store; without one, make none.

    What a process that died left in the folder is removed. A letter that is written late does not
    change the copy.

    Returns:
        How many rows they represent, by source.

    Raises:
        InfrastructureError: when they cannot be written.
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
    """Lines with their letters. A line that was cut off by a crash is skipped.

    After them, for each source, one for the rows without letters.
    """
    left_out: dict[str, DeadLetter] = {}
    for path in sorted((window_folder / DEAD_FOLDER).glob("*.jsonl")):
        seen = _SeenLetters()
        with path.open("rb") as stream:
            for line in map(bytes.rstrip, stream):
                letter = _parsed(line)
                if letter is None:
                    continue  # the process died while writing; the row was read and written again
                if letter.left_out:
                    seen.leave_out(letter)
                elif seen.is_new(letter):
                    yield line, letter
        for letter in seen.left_out():
            before = left_out.get(letter.source)
            rows = letter.rows + (before.rows if before else 0)
            left_out[letter.source] = letter.model_copy(update={"rows": rows})
    for letter in left_out.values():
        yield letter.model_dump_json().encode(), letter


class _SeenLetters:
    """The letters found so far in the file of one task."""

    def __init__(self) -> None:
        self._places: set[str] = set()
        self._spans: list[tuple[int, int]] = []
        self._without: list[tuple[int, int]] = []
        self._last: DeadLetter | None = None

    def is_new(self, letter: DeadLetter) -> bool:
        place = json.dumps(letter.location, sort_keys=True)
        if place in self._places:
            return False
        self._places.add(place)
        if letter.number is not None:
            self._spans.append((letter.number, letter.number + letter.rows))
        return True

    def leave_out(self, letter: DeadLetter) -> None:
        """These rows have no letters, except those that have one from an earlier reading."""
        self._last = letter
        first = letter.number or 0
        self._without.append((first, first + letter.rows))

    def left_out(self) -> Iterator[DeadLetter]:
        rows = _covered([*self._spans, *self._without]) - _covered(self._spans)
        if self._last is not None and rows:
            yield self._last.model_copy(update={"rows": rows, "number": None})


def _covered(spans: list[tuple[int, int]]) -> int:
    """How many numbers are in at least one of these spans."""
    count = until = 0
    for first, end in sorted(spans):
        count += max(0, end - max(first, until))
        until = max(until, end)
    return count


def _lines(task: DataTask, dead: Sequence[DeadRow], before: int, most: int, kept: int) -> str:
    """Letters of rows for as long as there is room, and a line for the others."""
    letter = partial(DeadLetter, source=task.source, window=task.window, generation=task.generation)
    lines: list[str] = []
    number = before
    for index, row in enumerate(dead):
        if kept >= most:
            found = letter(
                location={},
                reason=f"not kept: the source's dead letters have reached {most:,} bytes in this "
                "window (dead_letter_bytes_max)",
                rows=sum(each.rows for each in dead[index:]),
                number=number,
                left_out=True,
            )
            lines.append(found.model_dump_json() + "\n")
            break
        reason = redacted(row.reason)[:_REASON_MAX]
        found = letter(
            location=row.location, reason=reason, row=_row(row.row), rows=row.rows, number=number
        )
        lines.append(found.model_dump_json() + "\n")
        kept += len(lines[-1].encode())
        number += row.rows
    return "".join(lines)


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


def _parsed(line: bytes) -> DeadLetter | None:
    try:
        return DeadLetter.model_validate_json(line)
    except ValidationError:
        return None
