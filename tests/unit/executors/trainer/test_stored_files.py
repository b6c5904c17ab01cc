"""What a trained window leaves in the store: no letter that was counted is missing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.letters import letter, task

from forebay.datatasks.tasks import Position, TaskProgress
from forebay.errors import DataError
from forebay.executors.trainer.stored_files import WindowArchive
from forebay.executors.window_files.checkpoints import Seal
from forebay.executors.window_files.dead_letters import DeadLetterWriter
from forebay.executors.window_files.steps import STEPS_NAME
from forebay.home.store.folder_store import FolderStore


def final_seal(dead: dict[str, int]) -> Seal:
    progress = {
        name: TaskProgress(position=Position(0, 9), dead_rows=rows) for name, rows in dead.items()
    }
    of = {"window": "2026-03-01", "generation": 2, "step": 1, "window_step": 1, "final": True}
    kept: Any = {"base_seen": [], "seen": [], "scores": [], "runtime": "local"}
    at = datetime(2026, 3, 1, tzinfo=UTC)
    whose = {"model_fingerprint": "clicks", "progress": progress, "sealed_at": at}
    return Seal.model_validate(of | kept | whose)


@pytest.fixture
def local(tmp_path: Path) -> Path:
    """Where the window was trained: with its steps, a checkpoint and five letters of two tasks."""
    folder = tmp_path / "g2"
    (folder / "checkpoint").mkdir(parents=True)
    (folder / STEPS_NAME).touch()
    DeadLetterWriter(folder).write(task(3), [letter(row) for row in range(3)])
    DeadLetterWriter(folder).write(task(4), [letter(0, rows=2)])
    return folder


@pytest.mark.parametrize("dead", [{"clicks/3": 3, "clicks/4": 2}, {"clicks/3": 1}, {}])
def test_letters_read_again_may_be_more(tmp_path: Path, local: Path, dead: dict[str, int]) -> None:
    archive = WindowArchive(FolderStore(tmp_path / "store"), "ads", "main")
    found = archive.put_window("w", 2, local, final_seal(dead), local / "checkpoint")
    assert set(found) == {"checkpoint", "steps", "dead_letters"}


@pytest.mark.guarantee(
    "files of dead letters are lost or truncated while their window trains",
    "red, with window, source and number of rows",
)
def test_letters_that_were_counted_and_are_gone_are_red(tmp_path: Path, local: Path) -> None:
    archive = WindowArchive(FolderStore(tmp_path / "store"), "ads", "main")
    with pytest.raises(DataError, match="1 of the 6 dead letters of clicks are not on disk: train"):
        archive.put_window("w", 2, local, final_seal({"clicks/3": 6}), local / "checkpoint")
    with pytest.raises(
        DataError, match="2 of the 2 dead letters of history are not on disk: train"
    ):
        archive.put_window("w", 2, local, final_seal({"history/0": 2}), local / "checkpoint")
