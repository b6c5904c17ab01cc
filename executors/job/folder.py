"""The folder of one job: which files it has and how they change hands.

Who writes what: submitters `job.json`, `token`, `epoch`, `cancel.json` and the status `submitted`,
under `launch.lock`; the supervisor, which holds `supervisor.lock` for its life, every later status.
"""

from __future__ import annotations

import secrets
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path

from forebay.executors.job.request import JobRequest, JobStatus
from forebay.system.files import write_atomically, write_private
from forebay.system.locks import is_held, locked
from forebay.system.message import Message

STATUS_NAME = "status.json"
PROGRESS_NAME = "progress.json"
# Longer than a start of a supervisor, which happens under this lock.
LAUNCH_LOCK_SECONDS = 90.0
# A submitted job without a supervisor is starting, not lost, for this long.
START_SECONDS = 15.0


class CancelRequest(Message):
    """Somebody with this epoch wants the job to end."""

    epoch: int


class JobFolder:
    """Files of one job."""

    def __init__(self, path: Path) -> None:
        """`path` is `jobs/<job id>` below FOREBAY_HOME."""
        self.path = path
        self.supervisor_lock = path / "supervisor.lock"
        self.launch_lock_path = path / "launch.lock"
        self.supervisor_log = path / "logs" / "supervisor.log"
        self._status = path / STATUS_NAME
        self._progress = path / PROGRESS_NAME
        self._epoch = path / "epoch"
        self._cancel = path / "cancel.json"
        self._token = path / "token"

    def create(self) -> None:
        """Make the folder, closed to other users."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.mkdir(mode=0o700, exist_ok=True)
        for name in ("logs", "failures", "endpoints", "journal"):
            (self.path / name).mkdir(exist_ok=True)

    def launch_lock(self) -> AbstractContextManager[None]:
        """Held while a submitter or canceller changes the folder.

        Raises:
            InfrastructureError: when another holds it for `LAUNCH_LOCK_SECONDS`.
        """
        return locked(self.launch_lock_path, LAUNCH_LOCK_SECONDS)

    def log_path(self, role: str, index: int) -> Path:
        """Where a process's stdout and stderr go."""
        return self.path / "logs" / f"{role}-{index}.log"

    def epoch(self) -> int:
        """The newest owner's epoch; 0 before the first."""
        return int(self._epoch.read_text()) if self._epoch.is_file() else 0

    def next_epoch(self) -> int:
        """Make the caller the newest owner. Under the launch lock."""
        epoch = self.epoch() + 1
        write_atomically(self._epoch, str(epoch))
        return epoch

    def stored_status(self) -> JobStatus | None:
        """The status as it was written last; None before the first submission."""
        return JobStatus.of_file(self._status)

    def write_status(self, status: JobStatus) -> None:
        """Replace the status."""
        write_atomically(self._status, status.model_dump_json(indent=1))

    def status(self) -> JobStatus | None:
        """The stored status as it is true now: that of a dead supervisor becomes `lost`."""
        status = self.stored_status()
        if status is None or status.ended or is_held(self.supervisor_lock):
            return status
        again = self.stored_status()  # it may have ended between the two reads
        if again is None or again.ended:
            return again
        waited = (datetime.now(UTC) - again.submitted_at).total_seconds()
        if again.state == "submitted" and waited < START_SECONDS:
            return again
        return again.model_copy(update={"state": "lost"})

    def prepare(self, request: JobRequest, epoch: int) -> None:
        """Make everything ready for a new supervisor. Under both locks."""
        before = self.stored_status()
        if before is None or before.ended:
            self._progress.unlink(missing_ok=True)  # an earlier run's
        for endpoint in (self.path / "endpoints").iterdir():
            endpoint.unlink()  # of processes that are gone, or that the supervisor ends
        status = JobStatus(
            job_id=request.job_id,
            state="submitted",
            epoch=epoch,
            submitted_at=datetime.now(UTC),
        )
        if before is not None and not before.ended:
            restarts = dict(before.restarts)
            # One that was submitted but never ran lost no supervisor.
            restarts["supervisor"] += before.started_at is not None
            status = status.model_copy(update={"restarts": restarts, "ends": before.ends})
        self.drop_cancel()
        write_private(self._token, secrets.token_urlsafe(32))
        request.write(self.path)
        self.write_status(status)

    def request_cancel(self, epoch: int) -> None:
        """Ask the supervisor to end the job. Under the launch lock."""
        write_atomically(self._cancel, CancelRequest(epoch=epoch).model_dump_json())

    def cancel_request(self) -> CancelRequest | None:
        """The open request, if any."""
        return CancelRequest.of_file(self._cancel)

    def drop_cancel(self) -> None:
        """The request is answered. Under the launch lock."""
        self._cancel.unlink(missing_ok=True)
