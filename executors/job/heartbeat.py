"""Whether a job of another host lives: its heartbeat, watched by the watcher's own clock.

The clocks of two hosts are never compared, so each watcher has to look for as long itself.
"""

from __future__ import annotations

import time

from forebay.executors.job.stored_jobs import StoredJob, stored_job

# A job whose heartbeat stands still for so long is gone, or is refused when it wakes.
EXPIRED_SECONDS = 30.0
# A job that lives has a heartbeat in this time.
BEATS_SECONDS = 8.0
_LOOK_SECONDS = 0.5
_PAUSE_SECONDS = 5.0


class HeartbeatWatch:
    """How long a job has shown no sign of life, to whoever looks again and again.

    A look that comes long after the one before starts over: in between the database was away, and
    nobody could show a sign of life.
    """

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self._seen: object = None
        self._since = self._looked_at = 0.0

    def silent_seconds(self, job: StoredJob) -> float:
        """Since when its row stands still; 0 for a job of this host and for one that has ended."""
        now, row = time.monotonic(), job.row
        sign = (row.run_epoch, row.beats, row.state)
        paused = now - self._looked_at > _PAUSE_SECONDS
        if sign != self._seen or paused or job.is_here or not row.is_active:
            self._seen, self._since = sign, now
        self._looked_at = now
        return now - self._since


def is_silent(job: StoredJob, seconds: float = EXPIRED_SECONDS) -> bool:
    """Whether a job of another host shows no sign of life; takes until the first one or so long.

    Raises:
        InfrastructureError: when the database cannot be read.
        UsageError: when the job is not there any more.
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
