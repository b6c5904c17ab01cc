"""Poisons of a window: rows that killed a process that read them, and are not read again.

They are found while the window is trained and kept beside its dead letters, but for longer: stored
rows would kill a reader again, whatever became of the training that met them first.
"""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import ValidationError

from forebay.datatasks.sources.common.cautious.read_units import Poison
from forebay.datatasks.sources.common.rows.chunks import place_text
from forebay.datatasks.tasks import DataTask
from forebay.errors import DataError, InfrastructureError
from forebay.system.files.durable import append_lines, read_lines

# Below the folder in which a window is trained.
POISONS_FOLDER = "poisons"
# Each costs a few seconds: a source with more of them is broken, not a producer's slip.
POISONS_MAX = 100


class PoisonRecord:
    def __init__(self, window_folder: Path) -> None:
        self._window_folder = window_folder
        self._folder = window_folder / POISONS_FOLDER

    def of(self, task: DataTask) -> list[Poison]:
        """The poisons of one task, in the order in which they were found."""
        return _read(self._path(task))

    def add(self, task: DataTask, poison: Poison) -> None:
        """Store a poison; on return it is on disk.

        Raises:
            DataError: when its source has too many of them.
            InfrastructureError: when it cannot be written, or the window is not, or no longer,
                trained in this folder.
        """
        if not self._window_folder.is_dir():
            raise InfrastructureError(
                f"{self._window_folder} is gone, so its poisons cannot be kept: window "
                f"{task.window} was trained to its end, or its trainer has another FOREBAY_HOME"
            )
        if any(each.unit == poison.unit for each in self.of(task)):
            return  # the earlier holder of the lease has found it too
        if self._count(poison.source) >= POISONS_MAX:
            raise DataError(
                f"source {poison.source!r}: {POISONS_MAX} payloads of window {task.window} have "
                f"killed the process that read them, and {place_text(poison.unit.location)} did "
                f"too ({poison.reason}): no more are set aside. Correct what writes them, and "
                "delete or replace what is stored"
            )
        append_lines(self._path(task), poison.model_dump_json() + "\n")

    def _count(self, source: str) -> int:
        found = (each for path in self._folder.glob("*.jsonl") for each in _read(path))
        return sum(each.source == source for each in found)

    def _path(self, task: DataTask) -> Path:
        return self._folder / f"{task.task_id.replace('/', '-')}.jsonl"


def _read(path: Path) -> list[Poison]:
    """Only whole lines: an incomplete last one does not count, and its poison is found again."""
    found = []
    for line in read_lines(path):
        try:
            found.append(Poison.model_validate(json.loads(line)))
        except (ValidationError, ValueError):
            continue
    return found
