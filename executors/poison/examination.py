"""How a data executor examines tasks whose reader died."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.sources.common.rows.chunks import place_text
from forebay.datatasks.sources.common.rows.read_units import Poison
from forebay.datatasks.tasks import DataTask, Position, ReadUnit, TaskProgress
from forebay.errors import DataError
from forebay.executors.poison.suspicions import ReadingMark, Suspicion, Suspicions
from forebay.executors.poison.trial import Trial, TrialDiedError, TrialInVainError
from forebay.executors.window_files.poisons import PoisonRecord
from forebay.system.liveness import waiting

# A unit is blamed only if a fresh process died reading it: of the unit alone, or of the units after
# it, which are harmless without it.

# A decoder may take any number of messages at a time: the one that died was at most so far ahead.
UNITS_MIN = 1024
_STRETCH_MAX = 512
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class PoisonSearch:
    """Searches from the place where a process died.

    rows_min: the search ends this many rows after the place, or after the last poison.
    found: called with each poison and the reason, before the search continues.
    """

    trial: Trial
    rows_min: int
    found: Callable[[ReadUnit, str], None]

    def run(self, position: Position) -> None:
        """Search from a position on, until nothing near it kills a reader."""
        poison = self._next_after(position)
        while poison is not None:
            poison = self._next_after(max(position, poison.end))

    def _next_after(self, start: Position) -> ReadUnit | None:
        """The next poison, once it is reported; None if none is near."""
        rows, length, position = 0, 1, start
        passed: list[ReadUnit] = []
        while rows < self.rows_min or len(passed) < UNITS_MIN:
            stretch = self.trial.units(position, length)
            if not stretch:
                return None
            try:
                rows += self.trial.read(position, stretch[-1].end)
            except TrialDiedError as death:
                poison = self._blame(start, passed, position, stretch, death)
                if poison is not None:
                    return poison
            passed += stretch
            length = min(2 * length, _STRETCH_MAX)
            position = stretch[-1].end
        return None

    def _blame(
        self,
        start: Position,
        passed: Sequence[ReadUnit],
        position: Position,
        stretch: Sequence[ReadUnit],
        death: TrialDiedError,
    ) -> ReadUnit | None:
        """Find what kills in a stretch, or before it: the first unit that does so alone."""
        units = [*passed, *stretch]
        while len(stretch) > 1:
            half = stretch[: len(stretch) // 2]
            found = self._death_of(position, half[-1].end)
            if found is None:
                position, stretch = half[-1].end, stretch[len(half) :]
                death = TrialDiedError(str(death), is_certain=False)
            else:
                stretch, death = half, found
        (unit,) = stretch
        if death.is_certain:
            self.found(unit, str(death))
            return unit
        alone = self._death_anew(position, unit)
        if alone is None:
            return self._blame_before(start, units[: units.index(unit) + 1])
        self.found(unit, str(alone))
        return unit

    def _blame_before(self, start: Position, units: Sequence[ReadUnit]) -> ReadUnit | None:
        """Find the unit that does the damage at which a reader dies in the last one."""
        victim = units[-1]
        low, high = 0, len(units) - 1  # reading from `low` on it dies, from `high` on it survives
        death = self._death_anew(start, victim)
        if death is None:
            _LOG.warning("nothing near %s kills its reader a second time", victim.location)
            return None
        while high - low > 1:
            middle = (low + high) // 2
            found = self._death_anew(units[middle].first, victim)
            if found is None:
                high = middle
            else:
                low, death = middle, found
        self.found(units[low], f"{death}, a little later")
        return units[low]

    def _death_anew(self, first: Position, last: ReadUnit) -> TrialDiedError | None:
        self.trial.close()  # nothing that was read before may matter
        return self._death_of(first, last.end)

    def _death_of(self, first: Position, end: Position) -> TrialDiedError | None:
        try:
            self.trial.read(first, end)
        except TrialDiedError as death:
            return death
        return None


# Each examination has a child process with the memory of one more reader.
_AT_ONCE = 2


class Examiner:
    """Knows the poisons of one window's tasks, and finds those of suspected ones."""

    def __init__(
        self, job_dir: Path, index: int, window_folder: Path, deadline_seconds: float
    ) -> None:
        """Suspicions and marks are in `job_dir`, poisons are kept in `window_folder`.

        deadline_seconds: how long one part of an examination may take.
        """
        self._job_dir, self._index = job_dir, index
        self.suspicions = Suspicions(job_dir)
        self._record = PoisonRecord(window_folder)
        self._deadline = deadline_seconds
        self._at_once = threading.Semaphore(_AT_ONCE)

    def mark(self, task: DataTask) -> ReadingMark:
        return ReadingMark(self._job_dir, self._index, task)

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
        trial = Trial(
            self._job_dir, task, chunk_rows, known, self._deadline, crashed=suspicion.crashed
        )
        try:
            PoisonSearch(trial, 2 * chunk_rows, found).run(start)
        except TrialInVainError as error:
            _LOG.warning("task %s: the examination was given up: %s", task.task_id, error)
        finally:
            trial.close()


def _refused(spec: SourceSpec, poison: Poison) -> DataError:
    return DataError(
        f"source {spec.name!r}, {place_text(poison.unit.location)}: {poison.reason} "
        "(correct what is stored, or set it aside with bad_rows: dead_letter)"
    )
