"""How a data executor examines tasks whose reader died."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing

from forebay.config.specs.sources import SourceSpec
from forebay.datatasks.sources.common.cautious.read_units import Poison
from forebay.datatasks.sources.common.cautious.search import PoisonSearch
from forebay.datatasks.sources.common.rows.chunks import place_text
from forebay.datatasks.tasks import DataTask, ReadUnit
from forebay.errors import DataError
from forebay.executors.job.suspicions import ReadingMark, Suspicion
from forebay.executors.link.protocol import RoleLink
from forebay.executors.poison.trial import Trial, TrialInVainError
from forebay.executors.wire.messages import Grant
from forebay.system.liveness import waiting

# Tells the driver what is known of a suspected task: a poison, or None once it was read past the
# place. Raises as `DriverState.examined`.
Report = Callable[[DataTask, Suspicion, Poison | None], None]
# Each examination has a child process with the memory of one more reader.
_AT_ONCE = 2
_LOG = logging.getLogger(__name__)


class Examiner:
    """Finds the poisons of suspected tasks, in the lease of one epoch."""

    def __init__(self, link: RoleLink, report: Report, deadline_seconds: float) -> None:
        """deadline_seconds: how long one part of an examination may take."""
        self._link = link
        self._report = report
        self._deadline = deadline_seconds
        self._at_once = threading.Semaphore(_AT_ONCE)

    def mark(self, task: DataTask) -> ReadingMark:
        return self._link.mark(task)

    def cleared(self, grant: Grant) -> None:
        """A suspected task was read past the place, or to its end."""
        if grant.suspicion is not None:
            self._report(grant.task, grant.suspicion, None)

    def poisons(self, grant: Grant, spec: SourceSpec, chunk_rows: int) -> list[Poison]:
        """What must not be read of a task; a suspected one is examined first.

        Raises:
            DataError: when there is a poison and `bad_rows` is `fail`, or there are too many.
            InfrastructureError: when it cannot be examined.
        """
        known, progress = list(grant.poisons), grant.progress
        ahead = [each for each in known if progress is None or each.unit.end > progress.position]
        if ahead and spec.bad_rows == "fail":
            raise _refused(spec, ahead[0])
        if grant.suspicion is not None and grant.suspicion.is_due:
            with waiting():  # for other examinations, which are watched themselves
                self._at_once.acquire()
            try:
                self._examine(grant, grant.suspicion, spec, chunk_rows, known)
            finally:
                self._at_once.release()
            self.cleared(grant)
        return known

    def _examine(
        self,
        grant: Grant,
        suspicion: Suspicion,
        spec: SourceSpec,
        chunk_rows: int,
        known: list[Poison],
    ) -> None:
        task = grant.task

        def found(unit: ReadUnit, reason: str) -> None:
            poison = Poison(source=task.source, task_id=task.task_id, unit=unit, reason=reason)
            _LOG.warning("task %s: %s: %s", task.task_id, place_text(unit.location), reason)
            if spec.bad_rows == "fail":
                raise _refused(spec, poison)
            self._report(task, suspicion, poison)
            known.append(poison)

        start = suspicion.place.position
        if grant.progress is not None:
            start = max(start, grant.progress.position)
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
