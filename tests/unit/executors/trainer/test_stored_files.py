"""What a trained window leaves in the store: no letter that was counted is missing."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.letters import letter, letter_file, letters_of, task

from forebay.datatasks.tasks import Position, TaskProgress
from forebay.errors import DataError
from forebay.executors.trainer.stored_files import WindowArchive
from forebay.executors.trainer.window.sealed_rows import (
    learnt_rows,
    read_rows,
    row_times,
    window_rows,
)
from forebay.executors.window_files.checkpoints import Seal
from forebay.executors.window_files.dead_letters import DEAD_FOLDER, LETTERS_NAME, LetterFile
from forebay.executors.window_files.steps import STEPS_NAME
from forebay.home.store.base import Stored
from forebay.home.store.folder_store import FolderStore
from forebay.mixture.row_sums import RowSums


def seal(**more: Any) -> Seal:
    of = {"window": "2026-03-01", "generation": 2, "step": 7, "window_step": 2, "final": True}
    kept = {"base_seen": [], "seen": [], "scores": [], "progress": {}, "runtime": "local"}
    whose = {"model_fingerprint": "clicks", "sealed_at": datetime(2026, 3, 1, tzinfo=UTC)}
    return Seal.model_validate({**of, **kept, **whose, **more})


@dataclass
class Trained:
    """Where a window was trained: with its steps, a checkpoint and five letters of two tasks."""

    root: Path
    letters: LetterFile

    def put(self, dead: dict[str, int]) -> dict[Any, Stored]:
        at, folder = Position(0, 9), self.root / "g2"
        progress = {n: TaskProgress(position=at, dead_rows=rows) for n, rows in dead.items()}
        archive = WindowArchive(FolderStore(self.root / "store"), "ads", "main")
        sealed = seal(progress=progress, letters=self.letters.sealed())
        return archive.put_window(folder, sealed, folder / "checkpoint", self.letters)


@pytest.fixture
def trained(tmp_path: Path) -> Trained:
    folder = tmp_path / "g2"
    (folder / "checkpoint").mkdir(parents=True)
    (folder / STEPS_NAME).touch()
    letters = letter_file(folder)
    letters.append(letters_of(task(3), *map(letter, range(3))))
    letters.append(letters_of(task(4), letter(0, rows=2)))
    return Trained(tmp_path, letters)


def test_letters_are_stored_with_the_window(trained: Trained) -> None:
    found = trained.put({"clicks/3": 3, "clicks/4": 2})
    assert set(found) == {"checkpoint", "steps", "dead_letters"}


@pytest.mark.guarantee(
    "files of dead letters are lost or truncated while their window trains",
    "red, with window, source and number of rows",
)
def test_letters_that_were_counted_and_are_gone_are_red(trained: Trained) -> None:
    with pytest.raises(DataError, match="1 of the 6 dead letters of clicks are not on disk: train"):
        trained.put({"clicks/3": 6})
    with pytest.raises(
        DataError, match="2 of the 2 dead letters of history are not on disk: train"
    ):
        trained.put({"history/0": 2})
    file = trained.root / "g2" / DEAD_FOLDER / LETTERS_NAME
    os.truncate(file, 500)
    with pytest.raises(DataError, match="2 of the 5 dead letters of clicks are not on disk: train"):
        trained.put({"clicks/3": 5})


def test_rows_of_the_window_are_those_since_it_began() -> None:
    before, after = ([RowSums(rows=rows) for rows in each] for each in ((10, 5), (13, 5)))
    assert window_rows(seal(base_seen=before, seen=after)).tolist() == [3, 0]


def test_variants_learnt_what_they_did_not_know_before() -> None:
    """A variant that learnt nothing says so; one that left out nothing says nothing of it."""
    learnt = {"stream": [0, 9], "stream/paused": [0, 4], "batch": [6, 0]}
    before = {"stream": [0, 2], "stream/paused": [0, 4]}
    assert learnt_rows(["history", "clicks"], seal(base_learnt=before, learnt=learnt)) == {
        "history": {"stream": 0, "batch": 6},
        "clicks": {"stream": 7, "batch": 0},
    }


def test_a_model_that_only_counts_learnt_nothing() -> None:
    assert learnt_rows(["history"], seal()) == {}


def test_tasks_of_a_source_are_added_and_the_first_odd_one_is_told() -> None:
    def ended(**counts: int | str) -> TaskProgress:
        return TaskProgress.model_validate({"position": Position(0, 9), **counts})

    found = read_rows(
        ["clicks", "history"],
        {
            "clicks/1": ended(rows_read=5, dead_rows=1, late_rows=2),
            "clicks/2": ended(rows_read=7, odd_timestamps=2, first_odd="2026", label_not_known=3),
        },
    )
    assert found["history"].rows == 0
    odd = {"odd_timestamps": 2, "first_odd": "2026"}
    counts = {"rows": 12, "dead": 1, "late": 2, "label_not_known": 3}
    assert found["clicks"].model_dump(exclude={"offsets"}) == counts | odd


def test_the_first_and_the_last_time_are_those_of_all_tasks() -> None:
    def ended(first: int | None, last: int | None) -> TaskProgress:
        return TaskProgress(position=Position(0, 9), first_us=first, last_us=last)

    tasks = {
        "clicks@now/1": ended(5, 9),
        "clicks@now/2": ended(-3, 7),
        "clicks@old/1": ended(0, 0),
        "history/1": ended(None, None),
    }
    assert row_times(tasks) == {"clicks@now": (-3, 9), "clicks@old": (0, 0)}
