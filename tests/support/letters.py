"""Dead letters as data executors send them and a trainer keeps them, without either."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

from forebay.datatasks.tasks import DataTask, DeadRow, Position, RowRange
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.window_files.dead_letters import (
    DEAD_FOLDER,
    LetterFile,
    SealedLetters,
    letter_line,
)
from forebay.executors.wire.messages import Letter
from forebay.home.store.base import Stored
from forebay.home.store.open import store_of

DAY = datetime(2026, 3, 1, tzinfo=UTC)


def task(
    number: int = 3, source: str = "clicks", window: str = "2026-03-01", generation: int = 2
) -> DataTask:
    return DataTask(
        task_id=f"{source}/{number}",
        source=source,
        window=window,
        generation=generation,
        hour=0,
        partition="",
        ranges=(RowRange(path="a.parquet", first=0, end=20, rows=20, size_bytes=1),),
        rows=20,
        cut=False,
        data_from=DAY,
        data_to=DAY,
    )


def letter(row: int, text: str | None = None, rows: int = 1) -> DeadRow:
    location: dict[str, str | int] = {"file": "a.parquet", "row": row}
    return DeadRow(position=Position(0, row), location=location, reason="bad", row=text, rows=rows)


def letters_of(read: DataTask, *dead: DeadRow, first: int = 0) -> list[Letter]:
    """What a data executor sends of rows that are dead after `first` others."""
    found = []
    for row in dead:
        line, end = letter_line(read, row), first + row.rows
        found.append(Letter(task_id=read.task_id, first=first, end=end, line=line))
        first = end
    return found


def letter_file(
    window_folder: Path, most: int = 1 << 24, sealed: SealedLetters | None = None
) -> LetterFile:
    return LetterFile(window_folder, defaultdict(lambda: most), sealed or SealedLetters())


def local_letters(chain: ModelChain, window: str, generation: int, *rows: int) -> Path:
    """Letters of these rows in the folder in which the window is trained; that folder."""
    folder = chain.folder(window, generation)
    folder.mkdir(parents=True, exist_ok=True)
    read = task(window=window, generation=generation)
    letter_file(folder).append(letters_of(read, *(letter(row, "{}") for row in rows)))
    return folder


def stored_letters(chain: ModelChain, window: str, generation: int, *rows: int) -> Stored:
    """What a link names of such letters; nothing stays in the folder of the window."""
    folder = local_letters(chain, window, generation, *rows)
    stored = store_of(chain.home).put_tree("models", "dead_letters", folder / DEAD_FOLDER)
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
    return stored
