"""What may kill who reads it: poisons that were found, and suspicions, for the next reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from forebay.datatasks.sources.common.cautious.read_units import Poison
from forebay.datatasks.tasks import DataTask
from forebay.executors.job.suspicions import Suspicion, Suspicions
from forebay.executors.window_files.poisons import PoisonRecord
from forebay.executors.wire.messages import Examined


class Hazards:
    """Both are kept where executors need not reach: only their grants tell them."""

    def __init__(self, suspicions: Suspicions, folder: Callable[[str, int], Path]) -> None:
        """folder: where a window (key, generation) is trained, which keeps its poisons."""
        self._suspicions = suspicions
        self._folder = folder

    def poisons(self, task: DataTask) -> list[Poison]:
        """In the order in which they were found."""
        return self._record(task).of(task)

    def suspicion(self, task: DataTask) -> Suspicion | None:
        """Raises DataError when what is stored is damaged."""
        return self._suspicions.of(task)

    def examined(self, call: Examined) -> None:
        """Take news of a suspected task; on return a poison is on disk. Raises as `add`."""
        if call.poison is None:
            self._suspicions.drop(call.task)
            return
        self._suspicions.explain(call.suspicion)
        self._record(call.task).add(call.task, call.poison)

    def _record(self, task: DataTask) -> PoisonRecord:
        return PoisonRecord(self._folder(task.window, task.generation))
