"""How a data executor examines tasks whose reader died."""

from __future__ import annotations

import logging
import threading
from contextlib import closing
from pathlib import Path

from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.sources.common.cautious.read_units import Poison
from forebay.datatasks.sources.common.cautious.search import PoisonSearch
from forebay.datatasks.sources.common.rows.chunks import place_text
from forebay.datatasks.tasks import DataTask, ReadUnit, TaskProgress
from forebay.errors import DataError
from forebay.executors.job.suspicions import ReadingMark, Suspicion
from forebay.executors.link.protocol import RoleLink
from forebay.executors.poison.trial import Trial, TrialInVainError
from forebay.executors.window_files.poisons import PoisonRecord
from forebay.system.liveness import waiting

_LOG = logging.getLogger(__name__)

# Each examination has a child process with the memory of one more reader.
_AT_ONCE = 2


class Examiner:
    """Knows the poisons of one window's tasks, and finds those of suspected ones."""

    def __init__(self, link: RoleLink, window_folder: Path, deadline_seconds: float) -> None:
        """Poisons are kept in `window_folder`.

        deadline_seconds: how long one part of an examination may take.
        """
        self._link = link
        self.suspicions = link.suspicions
        self._record = PoisonRecord(window_folder)
        self._deadline = deadline_seconds
        self._at_once = threading.Semaphore(_AT_ONCE)

    def mark(self, task: DataTask) -> ReadingMark:
        return self._link.mark(task)

    def poisons(
        self, task: DataTask, spec: SourceSpec, progress: TaskProgress | None, chunk_rows: int
    ) -> list[Poison]:
        """What must not be read of a task; a suspected one is examined first.

        Raises:
            DataError: when there is a poison and `bad_rows` is `fail`, or there are too many.
            InfrastructureError: when it cannot be examined.
        """
        known = self._record.of(task)
        ahead = [each for each in known if progress is None or each.unit.end > progress.position]
        if ahead and spec.bad_rows == "fail":
            raise _refused(spec, ahead[0])
        suspicion = self.suspicions.of(task)
        if suspicion is not None and suspicion.is_due:
            with waiting():  # for other examinations, which are watched themselves
                self._at_once.acquire()
            try:
                self._examine(task, spec, suspicion, progress, chunk_rows, known)
            finally:
                self._at_once.release()
            self.suspicions.drop(task)
        return known

    def _examine(
        self,
        task: DataTask,
        spec: SourceSpec,
        suspicion: Suspicion,
        progress: TaskProgress | None,
        chunk_rows: int,
        known: list[Poison],
    ) -> None:
        def found(unit: ReadUnit, reason: str) -> None:
            poison = Poison(source=task.source, task_id=task.task_id, unit=unit, reason=reason)
            _LOG.warning("task %s: %s: %s", task.task_id, place_text(unit.location), reason)
            self.suspicions.explain(suspicion)
            if spec.bad_rows == "fail":
                raise _refused(spec, poison)
            self._record.add(task, poison)
            known.append(poison)

        start = suspicion.place.position
        if progress is not None:
            start = max(start, progress.position)
        _LOG.info("task %s is examined from %s on", task.task_id, tuple(start))
        given, crashed = self._link.arguments, suspicion.crashed
        trial = Trial(given, task, chunk_rows, known, self._deadline, crashed=crashed)
        with closing(trial):
            try:
                PoisonSearch(trial, 2 * chunk_rows, found, _unexplained).run(start)
            except TrialInVainError as error:
                _LOG.warning("task %s: the examination was given up: %s", task.task_id, error)


def _unexplained(unit: ReadUnit, _reason: str) -> None:
    _LOG.warning("nothing near %s kills its reader a second time", unit.location)


def _refused(spec: SourceSpec, poison: Poison) -> DataError:
    return DataError(
        f"source {spec.name!r}, {place_text(poison.unit.location)}: {poison.reason} "
        "(correct what is stored, or set it aside with bad_rows: dead_letter)"
    )
