"""OpenWindow: the window that is being trained, and its progress."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from forebay.datatasks.plans.plan import WindowPlan
from forebay.executors.job.request import WindowRequest
from forebay.executors.judging.judge import EventJudge
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.checkpoints import CheckpointStore, Seal
from forebay.executors.window_files.dead_letters import LetterFile
from forebay.executors.window_files.scores import ScoreWriter
from forebay.executors.window_files.steps import StepSeries
from forebay.mixture.row_sums import RowSums
from forebay.system.files.durable import sync, write_atomically


class DurableCounters:
    """Named int64 counters in one file. The page cache keeps them when the process is killed.

    After a power loss they are as last synced, or newer.
    """

    def __init__(self, path: Path, names: tuple[str, ...]) -> None:
        """Open or create the file; the counters of an earlier process continue."""
        self._path = path
        size_bytes = 8 * len(names)
        if not path.exists() or path.stat().st_size != size_bytes:
            write_atomically(path, bytes(size_bytes))
        self._index = {name: position for position, name in enumerate(names)}
        self._values = np.memmap(path, dtype=np.int64, mode="r+", shape=(len(names),))

    def add(self, name: str, amount: int) -> None:
        self._values[self._index[name]] += amount

    def value(self, name: str) -> int:
        return int(self._values[self._index[name]])

    def sync(self) -> None:
        sync(self._path)


COUNTERS = ("used_rows", "resumed_from_step")


@dataclass
class OpenWindow:
    """One window between its opening and its link.

    base_step, base_seen, base_learnt: of the model line where the window begins.
    scores: None where no score is kept. judge: None where no event is judged.
    window_step: minibatches that were used. sealed_step: how many of these the newest seal has.
    """

    request: WindowRequest
    plan: WindowPlan
    parent: Link | None
    base_step: int
    base_seen: list[RowSums]
    base_learnt: dict[str, list[int]]
    store: CheckpointStore
    letters: LetterFile
    scores: ScoreWriter | None
    judge: EventJudge | None
    counters: DurableCounters
    series: StepSeries
    started_at: datetime
    window_step: int = 0
    sealed_step: int = 0
    last_seal: Seal | None = None
    resumed_from_runtime: str | None = None

    @property
    def step(self) -> int:
        """From the start of the model line."""
        return self.base_step + self.window_step
