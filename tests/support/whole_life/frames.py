"""The frames of some windows, recorded from a real data path and read again by a trainer."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from forebay.datatasks.tasks import TaskProgress, further
from forebay.executors.job.folder import JobFolder
from forebay.executors.trainer.inbox import Frame
from forebay.executors.trainer.remote_reader import RemoteReader
from forebay.executors.window_files.dead_letters import DEAD_FOLDER
from forebay.home.paths import DEFAULT_LINE
from forebay.mixture.features.layout import FeatureLayout
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.row_sums import RowSums
from forebay.system.files.durable import append_lines
from support import independent
from support.data_path import Counter, DataPath, serving

_ARRAYS = ("row_ids", "event_ids", "sources", "labels", "dense", "ids")
_FACTS = ("executor", "epoch", "rows", "hour", "feed")


class Recorded:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def record(self, path: DataPath, windows: Sequence[str]) -> None:
        """What driver and data executors serve of each window, and their dead letters."""
        path.plan(windows[0], windows[-1])
        with serving(path, executors=1):
            reader = path.reader()
            for window in path.windows:
                counter = _Keeper(path)
                reader.begin(window.key, window.generation, {}, 0)
                counter.consume(reader)
                self._store(window.key, counter.kept)
                local = path.home.model("ads", DEFAULT_LINE, window.key, window.generation)
                shutil.copytree(local / DEAD_FOLDER, self._folder / window.key / DEAD_FOLDER)
            reader.close()

    def frames(self, window: str) -> list[Frame]:
        documents = json.loads((self._folder / window / "frames.json").read_text())
        return [self._frame(window, number, each) for number, each in enumerate(documents)]

    def letters(self, window: str) -> dict[str, list[str]]:
        files = sorted((self._folder / window / DEAD_FOLDER).iterdir())
        return {file.stem: file.read_text().splitlines(keepends=True) for file in files}

    def sums(self, window: str, names: Sequence[str]) -> dict[str, RowSums]:
        """Row sums of a window by source, from its frames."""
        parts = [each.minibatch for each in self.frames(window) if each.minibatch is not None]
        return {
            name: RowSums(**independent.sums(each.row_ids[each.sources == index] for each in parts))
            for index, name in enumerate(names)
        }

    def _store(self, window: str, frames: Sequence[Frame]) -> None:
        folder = self._folder / window
        folder.mkdir(parents=True)
        for number, frame in enumerate(frames):
            if frame.minibatch is not None:
                arrays = {name: getattr(frame.minibatch, name) for name in _ARRAYS}
                np.savez(folder / f"{number}.npz", **arrays)
        (folder / "frames.json").write_text(json.dumps([_document(each) for each in frames]))

    def _frame(self, window: str, number: int, document: dict[str, Any]) -> Frame:
        progress = {
            task: TaskProgress.model_validate(each)
            for task, each in document.pop("progress").items()
        }
        minibatch = None
        if document.pop("has_rows"):
            with np.load(self._folder / window / f"{number}.npz") as arrays:
                minibatch = Minibatch(feed=document["feed"], **dict(arrays))
        return Frame(minibatch=minibatch, progress=progress, **document)


class _Keeper(Counter):
    def __init__(self, path: DataPath) -> None:
        super().__init__(path)
        self.kept: list[Frame] = []

    def use(self, reader: RemoteReader, frame: Frame) -> None:
        self.kept.append(frame)
        super().use(reader, frame)


class ReplayedReader:
    """Stands where the trainer's reader does, and hands out recorded frames after the seal."""

    recorded: Recorded
    orders = (0, 0)  # no data executor comes or goes

    def __init__(
        self, job_dir: Path, layout: FeatureLayout, source_names: Sequence[str], attempt: int
    ) -> None:
        del layout, source_names, attempt
        self._home = JobFolder(job_dir).home
        self._left: list[Frame] = []
        self._used: dict[str, TaskProgress] = {}

    def begin(
        self, window: str, generation: int, sealed: Mapping[str, TaskProgress], step: int
    ) -> None:
        del step
        self._window = window
        self._folder = self._home.model("ads", DEFAULT_LINE, window, generation)
        self._used = dict(sealed)
        self._left = [each for each in self.recorded.frames(window) if self._is_new(each)]

    def next(self, timeout_seconds: float) -> Frame | None:
        del timeout_seconds
        if not self._left:
            return None
        frame = self._left.pop(0)
        self._write_letters(frame)
        return frame

    def used(self, frame: Frame) -> None:
        for task, progress in frame.progress.items():
            self._used[task] = further(self._used.get(task), progress)

    def finished(self) -> bool:
        return not self._left

    def progress(self) -> dict[str, TaskProgress]:
        return dict(self._used)

    def sealed(self, step: int, progress: Mapping[str, TaskProgress]) -> None:
        """No storage waits for positions here."""

    def dropped_rows(self) -> int:
        return 0

    def close(self) -> None:
        """Nothing is open."""

    def _write_letters(self, frame: Frame) -> None:
        """As a data executor does before it sends a frame."""
        letters = self.recorded.letters(self._window)
        for task, progress in frame.progress.items():
            before = self._used[task].dead_rows if task in self._used else 0
            name = task.replace("/", "-")
            lines = letters.get(name, [])[before : progress.dead_rows]
            if lines:
                append_lines(self._folder / DEAD_FOLDER / f"{name}.jsonl", "".join(lines))

    def _is_new(self, frame: Frame) -> bool:
        return any(
            further(self._used.get(task), progress) != self._used.get(task)
            for task, progress in frame.progress.items()
        )


def _document(frame: Frame) -> dict[str, Any]:
    return {
        **{name: getattr(frame, name) for name in _FACTS},
        "progress": {task: each.model_dump() for task, each in frame.progress.items()},
        "has_rows": frame.minibatch is not None,
    }
