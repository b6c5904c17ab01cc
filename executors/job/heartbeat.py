"""Whether a job of another host is alive: its heartbeat, watched by the watcher's own clock.

The clocks of two hosts are never compared, so each watcher has to watch for the whole time itself.
"""

from __future__ import annotations

import time

from forebay.executors.job.stored_jobs import StoredJob, stored_job

# A job whose heartbeat stops for this long is gone, or is refused when it wakes.
EXPIRED_SECONDS = 30.0
# A live job has a heartbeat within this time.
BEATS_SECONDS = 8.0
_LOOK_SECONDS = 0.5
_PAUSE_SECONDS = 5.0


class HeartbeatWatch:
    """How long a job has shown no sign of life, for a caller that looks repeatedly.

    A look long after the one before starts over: the database was away in between, and no job
    could show a sign of life.
    """

    def __init__(self) -> None:
        self._seen: object = None
        self._since = self._looked_at = 0.0

    def silent_seconds(self, job: StoredJob) -> float:
        """How long its row has not changed; 0 for a job of this host or one that has ended."""
        now, row = time.monotonic(), job.row
        sign = (row.run_epoch, row.beats, row.state)
        paused = now - self._looked_at > _PAUSE_SECONDS
        if sign != self._seen or paused or job.is_here or not row.is_active:
            self._seen, self._since = sign, now
        self._looked_at = now
        return now - self._since


def is_silent(job: StoredJob, seconds: float = EXPIRED_SECONDS) -> bool:
    """Whether a job of another host shows no sign of life; returns at the first one, or after that.

    Raises:
        InfrastructureError: when the database cannot be read.
        UsageError: when the job no longer exists.
    """
    if job.is_here:
        return False
    watch = HeartbeatWatch()
    silent = watch.silent_seconds(job)
    while silent < seconds:
        time.sleep(_LOOK_SECONDS)
        before, silent = silent, watch.silent_seconds(stored_job(job.home, job.job_id))
        if silent <= before:
            return False
    return True
