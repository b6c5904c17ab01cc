"""What a supervisor writes to the database and reads from it, in a separate thread.

Supervision never waits for the database. Only the newest state that could not be stored yet is
kept, so what waits is bounded; it is stored once the database answers again.
"""

from __future__ import annotations

import logging
import threading
import time

from forebay.errors import DataError, ForebayError, InfrastructureError
from forebay.executors.job import job_changes, job_rows
from forebay.executors.job.handle import GONE_SECONDS
from forebay.executors.job.request import JobStatus
from forebay.executors.link.protocol import JobLink
from forebay.executors.roles.resources import Desired
from forebay.home.database.open import database_of

BEAT_SECONDS = 5.0
# A cancel on this host pokes the supervisor and is seen at once; this is for other hosts.
LOOK_SECONDS = 1.0
RETRY_SECONDS = 1.0
# A full disk stays full until somebody acts, who then finds the job lost and runs it again.
LOCAL_SECONDS = 10.0
_LOG = logging.getLogger(__name__)


class StateReporter:
    def __init__(self, link: JobLink, status: JobStatus) -> None:
        self._link = link
        self._database = database_of(link.home)
        self._job_id, self._run_epoch = link.job_id, status.epoch
        self._changed = threading.Condition()
        self._waiting: JobStatus | None = None
        self._poked = self._closing = False
        self._beat_due = time.monotonic() + BEAT_SECONDS
        self._look_due = 0.0
        self._failing_since: float | None = None
        self._failure = ""
        self._refusal: ForebayError | None = None
        self.cancelled_by: int | None = None  # the epoch of a request that was accepted and stored
        self.desired: Desired | None = None
        self._thread = threading.Thread(target=self._work, name="report", daemon=True)
        self._thread.start()

    @property
    def problem(self) -> ForebayError | None:
        """Why the job cannot continue: the database is away for too long, or rejects its state."""
        since = self._failing_since
        if since is not None and time.monotonic() - since >= GONE_SECONDS:
            return InfrastructureError(
                f"the state of the job could not be stored for {GONE_SECONDS / 60:g} minutes "
                f"({self._failure}): run again once it can be stored; the job continues from its "
                "newest checkpoint"
            )
        if self._refusal is None and not self._thread.is_alive() and not self._closing:
            return InfrastructureError("the thread that stores the job's state has ended")
        return self._refusal

    def report(self, status: JobStatus) -> None:
        with self._changed:
            self._waiting = status
            self._changed.notify()

    def look(self) -> None:
        """Look at once whether somebody wants the job to end, or other processes."""
        with self._changed:
            self._poked = True
            self._changed.notify()

    def finish(self, status: JobStatus, seconds: float | None = None) -> bool:
        """Store the end; False if it is not. After an accepted cancel the job counts as cancelled.

        seconds: how long the database may be away; None for as long as a job waits for it.
        """
        if seconds is None:
            seconds = LOCAL_SECONDS if self._database.kind == "sqlite" else GONE_SECONDS
        deadline = time.monotonic() + seconds
        with self._changed:
            self._waiting = status
            self._closing = True
            self._changed.notify()
        while self._thread.is_alive() and time.monotonic() < deadline:
            self._thread.join(RETRY_SECONDS)
            if self._failing_since is not None and self.problem is not None:
                break
        return not self._thread.is_alive() and self._waiting is None

    def _work(self) -> None:
        while self._refusal is None and not (self._closing and self._waiting is None):
            self._await_work()
            try:
                self._act()
            except (OSError, ForebayError) as error:
                self._after_failure(error)
            else:
                self._after_success()

    def _await_work(self) -> None:
        with self._changed:
            if self._failing_since is not None:
                self._changed.wait(RETRY_SECONDS)
                return
            due = min(self._beat_due, self._look_due)
            self._changed.wait_for(
                lambda: self._waiting is not None or self._poked or self._closing,
                max(0.0, due - time.monotonic()),
            )

    def _act(self) -> None:
        now = time.monotonic()
        due = self._poked or now >= self._look_due
        # After a failure too: an answer may be stored although nothing came back.
        if self._failing_since is not None or (due and not self._closing):
            self._poked = False
            self._look_at_row()
            self._look_due = now + LOOK_SECONDS
        status = self._waiting
        if status is not None:
            self._store(status)
        elif now >= self._beat_due:
            progress = self._progress()
            self._database.transact(
                lambda rows: job_changes.beat(rows, self._job_id, self._run_epoch, progress)
            )
            self._beat_due = now + BEAT_SECONDS

    def _store(self, status: JobStatus) -> None:
        told = self._with_cancel(status)
        progress = self._progress()
        self._database.transact(lambda rows: job_changes.report(rows, told, progress))
        self._beat_due = time.monotonic() + BEAT_SECONDS
        with self._changed:
            if self._waiting is status:
                self._waiting = None

    def _with_cancel(self, status: JobStatus) -> JobStatus:
        """An accepted cancel cannot be undone, not even if the job ended first here."""
        if self.cancelled_by is None:
            return status
        changes: dict[str, object] = {"cancelled_by": self.cancelled_by}
        if status.ended:
            changes |= {"state": "cancelled", "error": None}
        return status.model_copy(update=changes)

    def _look_at_row(self) -> None:
        row = self._database.read(lambda rows: job_rows.find(rows, self._job_id))
        if row is not None and row.run_epoch == self._run_epoch:
            self.desired = row.wanted
        if row is not None and row.cancel_epoch is not None:
            self._answer_cancel()
        elif row is not None and row.run_epoch == self._run_epoch:
            self.cancelled_by = row.status.cancelled_by

    def _answer_cancel(self) -> None:
        answer = self._database.transact(
            lambda rows: job_changes.answer_cancel(rows, self._job_id, self._run_epoch)
        )
        if answer is None:
            return
        _LOG.info(
            "cancel by epoch %d: %s", answer.epoch, "accepted" if answer.accepted else "refused"
        )
        if answer.accepted:
            self.cancelled_by = answer.epoch

    def _progress(self) -> str | None:
        try:
            found = self._link.progress()
        except (OSError, DataError) as error:
            _LOG.warning("the progress is not stored: %s", error)
            return None
        return None if found is None else found.model_dump_json()

    def _after_failure(self, error: OSError | ForebayError) -> None:
        # A fence, another home, another version: waiting does not help.
        if not isinstance(error, OSError) and type(error) is not InfrastructureError:
            self._refusal = error
            return
        if self._failing_since is None:
            self._failing_since = time.monotonic()
        if str(error) != self._failure:
            self._failure = str(error)
            _LOG.warning("the job continues, its state is stored later: %s", error)

    def _after_success(self) -> None:
        if self._failing_since is not None:
            _LOG.info("the job's state is stored again")
        self._failing_since, self._failure = None, ""
