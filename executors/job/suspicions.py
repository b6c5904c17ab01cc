"""Which task a data executor was reading when a signal ended it: marks, and suspicions from them.

A data executor marks what it decodes, in files that outlive it and cost no sync. When it ends by a
signal, its supervisor turns the marks into suspicions: the next reader of a suspected task examines
it first. Marks and suspicions are lost with the host, which costs only time.
"""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from forebay.datatasks.tasks import DataTask, Position
from forebay.executors.roles.table import DATA
from forebay.system.files.durable import write_atomically, writing
from forebay.system.message import Message
from forebay.system.processes.ends import CRASHES, was_killed

# One may be anyone's `kill -9`; a payload that takes all memory is killed at the same place again.
KILLS_TO_SUSPECT = 2
_MARKS, _SUSPICIONS, _EXPLAINED = "reading", "suspicions", "explained"
_DECODES, _WAITS = b"d", b"w"
# A reader whose lease was lost may still be at the same task as the one after it.
_numbers = itertools.count()


class ReadPlace(Message):
    """A task, and the position from which its newest chunk was read."""

    window: str
    generation: int
    task_id: str
    position: Position

    @classmethod
    def of(cls, task: DataTask, position: Position) -> ReadPlace:
        return cls(
            window=task.window, generation=task.generation, task_id=task.task_id, position=position
        )

    @property
    def file_name(self) -> str:
        return f"{self.window}-g{self.generation}-{self.task_id.replace('/', '-')}.json"


class Suspicion(Message):
    """A process died while it read a task, somewhere after `place`.

    end: names the process's end. kills: consecutive SIGKILLs at this place. crashed: whether it
    was ended by one of `CRASHES`.
    """

    place: ReadPlace
    end: str
    kills: int = 0
    crashed: bool = False

    @property
    def is_due(self) -> bool:
        """Whether the task is to be examined before it is read again."""
        return self.crashed or self.kills >= KILLS_TO_SUSPECT


class ReadingMark:
    """Where the reader of one task is. A chunk costs two system calls, and no sync."""

    def __init__(self, folder: Path, task: DataTask) -> None:
        self._task = task
        self._descriptor: int | None = None
        name = ReadPlace.of(task, Position(0, 0)).file_name
        self._path = folder / f"{next(_numbers)}-{name}"

    @contextmanager
    def decoding(self, position: Position) -> Iterator[None]:
        """A chunk from `position` on is decoded inside the block.

        Raises:
            InfrastructureError: when the disk does not take the mark.
        """
        self._write(_DECODES, position)
        try:
            yield
        finally:
            self._write(_WAITS, position)

    def remove(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
            self._path.unlink(missing_ok=True)

    def _write(self, state: bytes, position: Position) -> None:
        with writing(self._path):
            if self._descriptor is None:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                self._descriptor = os.open(self._path, flags, 0o600)
            place = ReadPlace.of(self._task, position).model_dump_json().encode()
            # It may be shorter than what was there: the newline says where it ends.
            os.pwrite(self._descriptor, state + place + b"\n", 0)


class Suspicions:
    """The suspicions of one job: files in its folder, which outlive all its processes."""

    def __init__(self, job: Path) -> None:
        self._job = job
        self._folder = job / _SUSPICIONS

    # The supervisor --------------------------------------------------------------------------

    def executor_ended(self, index: int, number: int, end: str) -> bool:
        """Record that signal `number` ended a data executor. end: a name for this, for `explain`.

        Whether a task will be examined for it that would not have been otherwise.
        """
        marks = list(_marks(self._marks_of(index)))
        self.executor_starts(index)
        suspected = [place for decodes, place in marks if decodes]
        if number in CRASHES:
            # What one thread reads may break memory, and another thread then dies.
            suspected = suspected or [place for _, place in marks]
        elif not was_killed(number):
            return False
        due = [self._suspect(place, end, crashed=number in CRASHES) for place in suspected]
        return any(due)

    def executor_starts(self, index: int) -> None:
        """Remove the marks of an earlier process."""
        shutil.rmtree(self._marks_of(index), ignore_errors=True)

    def is_in_vain(self, end: str) -> bool:
        """Whether all suspicions from an end are examined, and nothing explains it."""
        if (self._folder / _EXPLAINED / end).exists():
            return False
        found = (Suspicion.of_file(path) for path in self._folder.glob("*.json"))
        return all(each is None or each.end != end for each in found)

    # A data executor ------------------------------------------------------------------------

    def mark(self, index: int, task: DataTask) -> ReadingMark:
        return ReadingMark(self._marks_of(index), task)

    def of(self, task: DataTask) -> Suspicion | None:
        """What is suspected of a task.

        Raises:
            DataError: when the file is damaged.
        """
        return Suspicion.of_file(self._path(ReadPlace.of(task, Position(0, 0))))

    def drop(self, task: DataTask) -> None:
        """The task was read past the place, or examined."""
        self._path(ReadPlace.of(task, Position(0, 0))).unlink(missing_ok=True)

    def explain(self, suspicion: Suspicion) -> None:
        folder = self._folder / _EXPLAINED
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / suspicion.end).touch()

    def _suspect(self, place: ReadPlace, end: str, *, crashed: bool) -> bool:
        path = self._path(place)
        before = Suspicion.of_file(path)
        if before is not None and before.is_due:
            return False
        kills = (before.kills if before else 0) + (not crashed)
        found = Suspicion(place=place, end=end, kills=kills, crashed=crashed)
        write_atomically(path, found.model_dump_json())
        return found.is_due

    def _path(self, place: ReadPlace) -> Path:
        return self._folder / place.file_name

    def _marks_of(self, index: int) -> Path:
        return self._job / _MARKS / f"{DATA.name}-{index}"


def _marks(folder: Path) -> Iterator[tuple[bool, ReadPlace]]:
    """Whether each task was being decoded, and from where."""
    for path in sorted(folder.glob("*.json")):
        line = path.read_bytes().partition(b"\n")[0]
        try:
            place = ReadPlace.model_validate_json(line[1:])
        except ValidationError:
            continue  # its process died before it had written all, or the disk was full
        yield line[:1] == _DECODES, place
