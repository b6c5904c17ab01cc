"""Sealed checkpoints: model, optimiser, row sums, data positions and scores at one barrier.

A checkpoint is a folder that appears under its final name only when everything in it is durable.
Its contents count as trained; every position newer than the newest seal is discarded.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field

from forebay.datatasks.tasks import TaskProgress
from forebay.errors import InfrastructureError
from forebay.executors.model_line.link import Parent
from forebay.executors.window_files.dead_letters import SealedLetters
from forebay.mixture.row_sums import RowSums
from forebay.system.files.durable import folder_checksums
from forebay.system.files.trees import new_tree, remove_tree
from forebay.system.message import Message

if TYPE_CHECKING:
    from forebay.mixture.learner import Learner

CHECKPOINTS_FOLDER = "checkpoints"
SEAL_NAME = "seal.json"
MODEL_FOLDER = "model"
KEPT_SEALS = 2


class Seal(Message):
    """What one checkpoint holds.

    step counts from the start of the model line, window_step from that of the window. plan: a
    fingerprint. parent: the link that the window was begun from. base_seen and seen are the model's
    row sums at the window's start and at this barrier, by source index: their difference is what
    this window trained. base_learnt, learnt: see `Learner`. runtime: see `runtime_of`.
    """

    window: str
    generation: int
    step: int
    window_step: int
    final: bool
    plan: str = ""
    parent: Parent | None = None
    model_fingerprint: str
    progress: dict[str, TaskProgress]
    base_seen: list[RowSums]
    seen: list[RowSums]
    base_learnt: dict[str, list[int]] = Field(default_factory=dict)
    learnt: dict[str, list[int]] = Field(default_factory=dict)
    scores: list[str]
    letters: SealedLetters = Field(default_factory=SealedLetters)
    sealed_at: datetime
    runtime: str
    checksums: dict[str, str] = Field(default_factory=dict)


class Beginning(NamedTuple):
    """plan: a fingerprint. base_seen: the parent's row sums, by source index; None without one."""

    plan: str
    parent: Parent | None
    model_fingerprint: str
    base_seen: Sequence[RowSums] | None

    def is_that_of(self, seal: Seal) -> bool:
        same = (self.plan, self.parent, self.model_fingerprint) == (
            seal.plan,
            seal.parent,
            seal.model_fingerprint,
        )
        return same and (self.base_seen is None or list(self.base_seen) == seal.base_seen)


class CheckpointStore:
    """Checkpoints of one (window, generation), below its model folder."""

    def __init__(self, model_folder: Path) -> None:
        self.window_folder = model_folder
        self.folder = model_folder / CHECKPOINTS_FOLDER
        self._pruning = threading.Lock()

    def write(self, learner: Learner, seal: Seal) -> Seal:
        """Save the learner and seal it; older checkpoints beyond the last two are removed."""
        target = self.folder / f"{seal.window_step:012d}{'-final' if seal.final else ''}"
        # A restart may reach the same barrier again.
        with new_tree(target, replace=True) as folder:
            model = folder / MODEL_FOLDER
            model.mkdir()
            learner.save(model)
            sealed = seal.model_copy(update={"checksums": folder_checksums(model)})
            (folder / SEAL_NAME).write_text(sealed.model_dump_json())
        self._prune()
        return sealed

    def newest(self) -> tuple[Seal, Path] | None:
        """The newest seal and the folder of its model; None before the first."""
        folders = self._sealed_folders()
        if not folders:
            return None
        folder = folders[-1]
        seal = Seal.of_file(folder / SEAL_NAME)
        return (seal, folder / MODEL_FOLDER) if seal is not None else None

    @contextmanager
    def newest_held(self) -> Iterator[tuple[Seal, Path] | None]:
        """As `newest`, for a thread other than the writer: it is not removed during the block."""
        with self._pruning:
            yield self.newest()

    def drop_others(self, begun: Beginning) -> None:
        """Remove checkpoints with a different beginning: they cannot be continued.

        The window before was trained again since then, or forgotten; the declaration was changed,
        which no link refuses in the first window of a line; or the database was restored from a
        backup: then the same generation numbers are used again, perhaps for different rows.
        """
        newest = self.newest()
        if newest is None:
            return
        if not begun.is_that_of(newest[0]):
            remove_tree(self.folder)

    def load(self, learner: Learner) -> Seal | None:
        """Restore the newest seal into the learner.

        Raises:
            InfrastructureError: when the stored bytes are not those that were sealed.
        """
        newest = self.newest()
        if newest is None:
            return None
        seal, folder = newest
        sealed, found = seal.checksums, folder_checksums(folder)
        names = sorted(sealed.keys() | found.keys())
        damaged = [name for name in names if sealed.get(name) != found.get(name)]
        if damaged:
            raise InfrastructureError(
                f"checkpoint {folder.parent} is damaged ({', '.join(damaged)} changed since it was "
                f"sealed): restore the folder, or train window {seal.window} again (`forebay run` "
                "with --reprocess; in Airflow, clear its run)"
            )
        learner.load(folder)
        return seal

    def _sealed_folders(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        return sorted(
            (
                path
                for path in self.folder.iterdir()
                if not path.name.startswith(".") and (path / SEAL_NAME).is_file()
            ),
            key=lambda path: (int(path.name.partition("-")[0]), path.name),
        )

    def _prune(self) -> None:
        with self._pruning:
            folders = self._sealed_folders()
            keep = 1 if folders and folders[-1].name.endswith("-final") else KEPT_SEALS
            for folder in folders[:-keep]:
                remove_tree(folder)
