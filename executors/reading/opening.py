"""What a reading needs before its first row: plans, a job's folder, processes that serve it."""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from forebay.config.explain import declared_columns
from forebay.config.load import Project
from forebay.config.specs.jobs import INLINE
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.windows import Window
from forebay.datatasks.planning.planner import plan_windows
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.plan import WindowPlan
from forebay.errors import InfrastructureError
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.request import JobRequest, JobStatus, WindowRequest
from forebay.executors.link.local import LocalLink
from forebay.executors.planes.base import Plane
from forebay.executors.planes.local import LocalPlane
from forebay.executors.roles.resources import Desired
from forebay.executors.roles.table import Role, roles
from forebay.executors.supervisor.commands import RoleCommands
from forebay.executors.supervisor.processes import JobProcesses
from forebay.executors.trainer.remote_reader import RemoteReader
from forebay.home.database.open import close_database
from forebay.home.paths import DEFAULT_LINE, Home
from forebay.mixture.features.layout import FeatureLayout
from forebay.system.output.process_log import LogTail

START_SECONDS = 60.0
STOP_GRACE_SECONDS = 5.0
LOG_LINES = 15
_TICK_SECONDS = 0.05
_NO_LEASE = 0  # of a model line: nothing is trained here
_ATTEMPT = 1  # of the reader: its folder is new, and no other one will ever read in it


class ServingProcesses:
    """Runs the processes from a separate thread; the kernel ends them when that thread ends.

    So they end with this process too, however it ends. On the plane `inline` they are threads of
    this process; on any other, they are processes of this machine.
    """

    def __init__(self, folder: JobFolder, request: JobRequest) -> None:
        self._folder, self._request = folder, request
        self._closing = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="data executors", daemon=True)

    def start(self) -> None:
        """Start the processes; returns once the driver answers.

        Raises:
            ForebayError: when it does not, with the reason.
        """
        self._thread.start()
        deadline = time.monotonic() + START_SECONDS
        while not self._folder.driver_endpoint.is_file():
            self.check()
            if time.monotonic() > deadline:
                error = InfrastructureError(f"no driver answers after {START_SECONDS:.0f} s")
                raise self._explained(error)
            time.sleep(_TICK_SECONDS)

    def check(self) -> None:
        """Raise the error that ended the processes: they could not be restarted, or too often."""
        if self._error is not None:
            raise self._explained(self._error)

    def close(self) -> None:
        """End all of them; returns when they are gone."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        job = self._request.pipeline_spec().job
        plane = self._plane(job.plane)
        try:
            now, job_id = datetime.now(UTC), self._request.job_id
            status = JobStatus(
                job_id=job_id, state="running", epoch=1, submitted_at=now, started_at=now
            )
            commands = RoleCommands(_serving(), job, self._folder.arguments, _NO_LEASE)
            desired = Desired.declared(job, 1, _serving())
            processes = JobProcesses(self._folder, self._request, plane, commands, status, desired)
            while not self._closing.is_set():
                _, outcome = processes.tick()
                if outcome is not None and outcome.error is not None:
                    self._error = outcome.error.exception()
                    return
                self._closing.wait(_TICK_SECONDS)
        except Exception as error:  # noqa: BLE001 - raised where rows are read
            self._error = error
        finally:
            plane.stop(STOP_GRACE_SECONDS)

    def _plane(self, declared: str) -> Plane:
        if declared == INLINE:
            from forebay.executors.supervisor.inline import InlinePlane

            return InlinePlane(self._folder.name)
        return LocalPlane(self._folder.name, adopts_orphans=False)

    def _explained(self, error: Exception) -> Exception:
        """The error with the last lines of the processes' logs, which are removed at the end."""
        if not getattr(error, "__notes__", None):
            job = self._request.pipeline_spec().job
            for role, index in Desired.declared(job, 1, _serving()).processes:
                log = self._folder.process(role, index).log
                error.add_note("\n".join([f"{log.name} ends with:", *LogTail(log).last(LOG_LINES)]))
        return error


def _serving() -> list[Role]:
    return [role for role in roles() if not role.trains_line]


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
    for plan in plans:  # the window's poisons
        made = home.model(wanted.pipeline.name, DEFAULT_LINE, plan.window, plan.generation)
        made.mkdir(parents=True)
    processes = ServingProcesses(job, request)
    stack.callback(processes.close)
    processes.start()
    link = LocalLink(job.path)
    reader = RemoteReader(link, layout_of(wanted), wanted.pipeline.use_names, _ATTEMPT)
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
        alone=True,
    )
