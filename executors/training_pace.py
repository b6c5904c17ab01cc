"""How long training takes: what a job costs before its first row, then windows and their rows.

A job starts its processes, loads TensorFlow and traces the model with its first minibatches: that
is paid once, however few rows there are. Each window then costs a fixed time (its checkpoint, its
scores) and a time for each row. All three are estimated from the line's newest jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, linear_regression, median
from typing import NamedTuple

from forebay.executors.job.stored_jobs import StoredJob, newest_jobs
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.system.message import Message

_NEWEST = 20  # older windows may have run with other features, or on another machine
# Measured on 2026-11-23 with `forebay run` of the demo's pipeline (three paradigms, 256 rows a
# minibatch, windows of 1,500 to 3,900 rows) on two cores that other work kept busy. The first job
# of a user, which compiles the kernels and reads TensorFlow from a cold disk, took 80 s to start.
DEFAULT_JOB_SECONDS = 20.0
DEFAULT_WINDOW_SECONDS = 1.0
DEFAULT_ROW_SECONDS = 0.0006


class Pace(Message):
    """What training costs, in seconds.

    windows, jobs: how many that was measured on; 0 where defaults are used. rows: of these windows.
    job_seconds: of one job without its windows. window_seconds: of one window without its rows.
    """

    windows: int = 0
    jobs: int = 0
    rows: int = 0
    job_seconds: float = DEFAULT_JOB_SECONDS
    window_seconds: float = DEFAULT_WINDOW_SECONDS
    row_seconds: float = DEFAULT_ROW_SECONDS

    def seconds(self, windows: Sequence[Mapping[str, int | None]]) -> float | None:
        """Seconds of one job that trains windows with these rows by source.

        A window whose rows only reading can count is assumed to be average. None if there is no
        average.
        """
        if not windows:
            return 0.0
        found = [self._of_one(list(rows.values())) for rows in windows]
        known = [seconds for seconds in found if seconds is not None]
        return self.job_seconds + sum(known) if len(known) == len(found) else None

    def _of_one(self, counts: Sequence[int | None]) -> float | None:
        known = [count for count in counts if count is not None]
        if len(known) == len(counts):
            return self.window_seconds + self.row_seconds * sum(known)
        if not self.windows:
            return None
        return self.window_seconds + self.row_seconds * self.rows / self.windows


class _Point(NamedTuple):
    """One trained window."""

    rows: int
    seconds: float


def pace_of(chain: ModelChain) -> Pace:
    """The pace of a line's newest jobs and windows; defaults for what these do not show."""
    links = {(link.window, link.generation): link for link in chain.last(_NEWEST)}
    if not links:
        return Pace()
    jobs = _measured_jobs(chain, links)
    first = {(job.windows[0].key, job.windows[0].generation) for job, _ in jobs}
    points = [_point(link) for name, link in links.items() if name not in first]
    per_window, per_row = _fitted(points)
    starts = [
        max(0.0, _job_seconds(job) - sum(per_window + per_row * _rows(link) for link in trained))
        for job, trained in jobs
    ]
    return Pace(
        windows=len(links),
        jobs=len(jobs),
        rows=sum(map(_rows, links.values())),
        job_seconds=median(starts) if starts else DEFAULT_JOB_SECONDS,
        window_seconds=per_window,
        row_seconds=per_row,
    )


def _measured_jobs(
    chain: ModelChain, links: Mapping[tuple[str, int], Link]
) -> list[tuple[StoredJob, list[Link]]]:
    """Jobs that ran from submission to success in one go, with the links of all their windows."""
    found, _ = newest_jobs(chain.home, chain.pipeline, chain.line, _NEWEST)
    measured = []
    for job in found:
        status = job.row.status
        trained = [links[each] for each in job.windows if each in links]
        whole = len(trained) == len(job.windows) > 0 and not any(status.restarts.values())
        resumed = any(link.resumed_from_step for link in trained)
        if status.state == "succeeded" and status.ended_at and whole and not resumed:
            measured.append((job, trained))
    return measured


def _fitted(points: Sequence[_Point]) -> tuple[float, float]:
    """Seconds of a window and of a row, neither below 0."""
    if not points:
        return DEFAULT_WINDOW_SECONDS, DEFAULT_ROW_SECONDS
    rows, seconds = [each.rows for each in points], [each.seconds for each in points]
    if len(set(rows)) > 1:
        slope, intercept = linear_regression(rows, seconds)
        if slope >= 0 and intercept >= 0:
            return intercept, slope
    # The points are too much alike to separate the two.
    window = min(DEFAULT_WINDOW_SECONDS, *seconds)
    return (window, (fmean(seconds) - window) / fmean(rows)) if any(rows) else (fmean(seconds), 0.0)


def _job_seconds(job: StoredJob) -> float:
    status = job.row.status
    ended = status.ended_at or status.submitted_at
    return (ended - status.submitted_at).total_seconds()


def _point(link: Link) -> _Point:
    return _Point(_rows(link), (link.finished_at - link.started_at).total_seconds())


def _rows(link: Link) -> int:
    return sum(link.trained(source).rows for source in link.seen)
