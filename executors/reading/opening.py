"""What a reading needs before its first row: plans, a job's folder, processes that serve it."""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from forebay.config.explain import declared_columns
from forebay.config.load import Project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.windows import Window
from forebay.datatasks.planning.planner import plan_windows
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.plan import WindowPlan
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.request import JobRequest, WindowRequest
from forebay.executors.reading.processes import ServingProcesses
from forebay.executors.trainer.remote_reader import RemoteReader
from forebay.home.database.open import close_database
from forebay.home.paths import DEFAULT_LINE, Home
from forebay.mixture.features.layout import FeatureLayout

JOB_ID = "reading"
FOLDER_PREFIX = "forebay-reading-"
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Windows:
    """What is to be read: windows of a pipeline, ascending."""

    project: Project
    pipeline: PipelineSpec
    windows: Sequence[Window]


class Opened(NamedTuple):
    """A reading whose processes run. plans: of all windows, ascending."""

    plans: list[WindowPlan]
    processes: ServingProcesses
    reader: RemoteReader


def layout_of(wanted: Windows) -> FeatureLayout:
    """Where each feature is in the served rows."""
    columns = declared_columns(wanted.pipeline, wanted.project.sources)
    return FeatureLayout.of(wanted.pipeline.dataset, columns)


def open_reading(wanted: Windows, stack: ExitStack) -> Opened:
    """Plan the windows and start what serves them; `stack` ends and removes all of it.

    Raises:
        NotReadyError: when a window is not closed, or a source is late and may not be skipped.
        DataError: when stored data cannot be planned.
        ForebayError: when the processes do not start, with the reason.
    """
    # TemporaryDirectory would also remove it at the end of a forked process.
    folder = tempfile.mkdtemp(prefix=FOLDER_PREFIX)
    stack.callback(shutil.rmtree, folder)
    home = Home(Path(folder), alone=True)
    stack.callback(close_database, home)
    plans = _planned(wanted, home)
    request = _request(wanted, home, plans)
    job = JobFolder(home.job(JOB_ID))
    job.create()
    job.prepare(request, continues=False)
    for plan in plans:  # poisons and dead letters of the window
        made = home.model(wanted.pipeline.name, DEFAULT_LINE, plan.window, plan.generation)
        made.mkdir(parents=True)
    processes = ServingProcesses(job, request)
    stack.callback(processes.close)
    processes.start()
    reader = RemoteReader(job.path, layout_of(wanted), wanted.pipeline.use_names)
    stack.callback(reader.close)
    return Opened(plans, processes, reader)


def _planned(wanted: Windows, home: Home) -> list[WindowPlan]:
    report = plan_windows(
        wanted.project.root,
        wanted.pipeline,
        wanted.project.sources,
        Ledger(home, wanted.pipeline.name),
        wanted.windows,
        warm_start=None,
        clock=lambda: datetime.now(UTC),
        waiting=_LOG.info,
    )
    for note in report.notes:
        _LOG.info("%s", note)
    return report.plans


def _request(wanted: Windows, home: Home, plans: Sequence[WindowPlan]) -> JobRequest:
    return JobRequest.of(
        JOB_ID,
        home.root,
        wanted.project.root,
        wanted.pipeline,
        wanted.project.sources,
        [
            WindowRequest(key=p.window, generation=p.generation, start=p.start, end=p.end)
            for p in plans
        ],
        declared=wanted.project.declared(wanted.pipeline.name),
        commits=False,
    )
