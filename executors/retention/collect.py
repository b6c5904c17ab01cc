"""Finds files of older windows, forgets them in the database, then removes them, in that order.

A process that dies in between leaves bytes that no row names: `forebay gc` finds those.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from forebay.config.specs.pipelines import PipelineSpec
from forebay.errors import ForebayError
from forebay.executors.model_line.rows.line_rows import line_id
from forebay.executors.retention.job_folders import old_job_folders, remove_job_folder
from forebay.executors.retention.old_files import forget_files, of_old_windows, that_may_go
from forebay.executors.retention.old_plans import OldPlan, forget_plans, old_plans
from forebay.executors.retention.rule import LinkFile, WindowsKept
from forebay.home.database.open import database_of
from forebay.home.paths import Home
from forebay.home.store.garbage import only_collector
from forebay.home.store.open import store_of

# Changed by one transaction; the bytes follow before the next one.
_AT_ONCE = 100
# How many windows, and folders of jobs, one call after a publication looks at: only one more
# becomes old each time.
_LOOKED_AT = 20
_AFTER_SECONDS = 10.0
_ALONE_SECONDS = 1.0
_LOG = logging.getLogger(__name__)


class Going(NamedTuple):
    """Something to be removed. kind: of a link's files, or `plan`, `job`, `training` or `seal`.

    line: none for a plan, which all lines share. place: a name in the store, or a folder; none for
    a plan, whose tasks other generations may share.
    """

    kind: str
    pipeline: str
    line: str | None
    window: str | None
    generation: int | None
    place: str | None
    size_bytes: int | None = None


class _Old(NamedTuple):
    """Stored files of a line's old windows, needed or not, and plans that may be removed."""

    line_id: int | None
    files: list[LinkFile]
    plans: list[OldPlan]


class LineRetention:
    """What is to be removed of one model line, and of the plans of its pipeline."""

    def __init__(self, home: Home, pipeline: PipelineSpec, line: str) -> None:
        self._home = home
        self._pipeline = pipeline.name
        self._line = line
        self._kept = WindowsKept.of(pipeline)

    def find(self) -> list[Going]:
        def work(rows: Connection) -> list[Going]:
            old = self._look(rows)
            return self._told(self._may_go(rows, old), old.plans)

        rows = database_of(self._home).read(work)
        jobs = old_job_folders(self._home, self._pipeline, self._line, self._kept.records)
        return [*rows, *map(self._job, jobs)]

    def remove(self, seconds: float | None = None) -> Iterator[Going]:
        """Remove what is no longer kept, and name it. Only inside `only_collector`.

        seconds: after which nothing more is begun, for a caller that cannot wait; it looks only at
            what became old last. None to continue until all is gone.

        Raises:
            InfrastructureError: when database, store or disk refuse.
        """
        deadline = None if seconds is None else time.monotonic() + seconds
        most = None if seconds is None else _LOOKED_AT
        full = True
        while full:
            gone = self._remove_some(most)
            yield from gone
            full = len(gone) >= _AT_ONCE  # then there may be more
            if deadline is not None and time.monotonic() > deadline:
                return
        kept = self._kept.records
        for folder in old_job_folders(self._home, self._pipeline, self._line, kept, most):
            if remove_job_folder(folder):
                yield self._job(folder)

    def _remove_some(self, most: int | None) -> list[Going]:
        database = database_of(self._home)
        old = database.read(lambda rows: self._look(rows, most))
        if not old.files and not old.plans:
            return []  # without a write transaction, for which others would wait

        def work(rows: Connection) -> tuple[list[Going], list[str]]:
            files = self._may_go(rows, old)[:_AT_ONCE]
            plans = self._look_at_plans(rows, most)[:_AT_ONCE] if old.plans else []
            forget_files(rows, files)
            names = [*(file.name for file in files), *forget_plans(rows, plans)]
            return self._told(files, plans), names

        gone, names = database.transact(work)
        store_of(self._home).remove(names)
        return gone

    def _look(self, rows: Connection, most: int | None = None) -> _Old:
        """most: how many windows are looked at, the newest of the old ones; None for all."""
        of_line = line_id(rows, self._pipeline, self._line)
        files: list[LinkFile] = []
        if of_line is not None:
            files = of_old_windows(rows, self._pipeline, of_line, self._kept, most)
        return _Old(of_line, files, self._look_at_plans(rows, most))

    def _look_at_plans(self, rows: Connection, most: int | None) -> list[OldPlan]:
        return old_plans(rows, self._pipeline, self._kept.records, most)

    def _may_go(self, rows: Connection, old: _Old) -> list[LinkFile]:
        if old.line_id is None:
            return []
        return that_may_go(rows, self._pipeline, self._line, old.line_id, old.files)

    def _told(self, files: Sequence[LinkFile], plans: Sequence[OldPlan]) -> list[Going]:
        line = self._pipeline, self._line
        return [
            *(
                Going(one.kind, *line, one.window, one.generation, one.name, one.size_bytes)
                for one in files
            ),
            *(Going("plan", line[0], None, one.window, one.generation, None) for one in plans),
        ]

    def _job(self, folder: Path) -> Going:
        return Going("job", self._pipeline, self._line, None, None, str(folder))


def collect_after(event: str, home: Home, pipeline: PipelineSpec, line: str) -> None:
    """Remove what is no longer kept, for a few seconds at most, after an event it must not fail.

    It reads only rows, and nothing in the store. What could not be removed is reported as a
    warning, and removed by the next call or by `forebay gc`.

    event: what happened, for the warning.
    """
    try:
        with only_collector(home, _ALONE_SECONDS):
            gone = list(LineRetention(home, pipeline, line).remove(_AFTER_SECONDS))
    except (ForebayError, OSError, SQLAlchemyError) as error:
        _LOG.warning(
            "%s, but files of older windows of pipeline %r were not removed: %s. "
            "The next window that is trained removes them, or `forebay gc` does",
            event,
            pipeline.name,
            error,
            # For errors that the database layer does not explain, the log has the traceback.
            exc_info=isinstance(error, SQLAlchemyError),
        )
    else:
        if gone:
            _LOG.info("removed of older windows: %d", len(gone))
