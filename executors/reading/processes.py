"""The driver and the data executors of a reading: restarted when they end, gone with it."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from datetime import UTC, datetime

from forebay.errors import InfrastructureError
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.request import JobRequest, JobStatus
from forebay.executors.planes.base import Launch
from forebay.executors.planes.local import LocalExecution, LocalPlane
from forebay.executors.supervisor.commands import RoleCommand, role_commands
from forebay.executors.supervisor.processes import JobProcesses
from forebay.executors.wire.rpc import ENDPOINT_FILE
from forebay.home.database.base import DATABASE_NAME
from forebay.home.store.base import STORE_NAME
from forebay.system.output.process_log import LogTail

START_SECONDS = 60.0
STOP_GRACE_SECONDS = 5.0
LOG_LINES = 15
_TICK_SECONDS = 0.05
_NO_LEASE = 0  # of a model line: nothing is trained here


class ServingProcesses:
    """Runs the processes from a separate thread; the kernel ends them when that thread ends.

    So they end with this process too, however it ends.
    """

    def __init__(self, folder: JobFolder, request: JobRequest) -> None:
        """Nothing is started yet. folder: prepared for the request."""
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
        while not (self._folder.path / ENDPOINT_FILE).is_file():
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
        plane = _LonePlane()
        try:
            processes = JobProcesses(
                self._folder, self._request, plane, self._commands(), self._status()
            )
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

    def _commands(self) -> list[RoleCommand]:
        job = self._request.pipeline_spec().job
        commands = role_commands(job, self._folder.path, _NO_LEASE)
        return [each for each in commands if each.role != "trainer"]

    def _status(self) -> JobStatus:
        now = datetime.now(UTC)
        return JobStatus(
            job_id=self._request.job_id, state="running", epoch=1, submitted_at=now, started_at=now
        )

    def _explained(self, error: Exception) -> Exception:
        """The error with the last lines of the processes' logs, which are removed at the end."""
        if not getattr(error, "__notes__", None):
            for each in self._commands():
                log = self._folder.log_path(each.role, each.index)
                error.add_note("\n".join([f"{log.name} ends with:", *LogTail(log).last(LOG_LINES)]))
        return error


class _LonePlane(LocalPlane):
    """A plane whose processes find all state in the folder that they are given."""

    def start(self, launch: Launch) -> LocalExecution:
        """See `Plane.start`."""
        elsewhere = (DATABASE_NAME, STORE_NAME)
        kept = {name: each for name, each in launch.environment.items() if name not in elsewhere}
        return super().start(replace(launch, environment=kept))
