"""What a backfill costs: rows, storage calls and time; nothing is recorded or trained.

The storage is scanned as planning scans it, so rows and calls are those that planning will find.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from statistics import fmean, median
from typing import Literal

from forebay.config.specs.datasets import source_of
from forebay.config.specs.windows import Window
from forebay.datatasks.look.changes import changes_since
from forebay.datatasks.look.why import why_not_planned
from forebay.datatasks.planning.lister import SourceLister
from forebay.datatasks.planning.operations import Clock, shares_of
from forebay.datatasks.planning.source_operation import SourceOperation
from forebay.errors import NotReadyError
from forebay.executors.job.stored_jobs import newest_jobs
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.start import warm_start_of
from forebay.executors.stages.target import LineTarget
from forebay.system.message import Message

Rows = dict[str, int | None]
Does = Literal["skip", "train", "train again", "wait"]
_NEWEST = 20  # older windows may have run with other features, or on another machine
# Of a line that has trained nothing; the demo's pipeline on two cores, measured on 2026-11-23.
_JOB_SECONDS, _ROW_SECONDS = 20.0, 0.0006


class WindowCost(Message):
    """One window of the range.

    rows: by source; None where only reading can count. reason: why it waits.
    """

    window: str
    does: Does
    rows: Rows
    reason: str = ""


class Pace(Message):
    """Seconds of a job without its rows, and of a row; windows: measured on so many, 0: defaults.

    window_rows: how many a window had, for those whose rows only reading can count.
    """

    windows: int = 0
    job_seconds: float = _JOB_SECONDS
    row_seconds: float = _ROW_SECONDS
    window_rows: float | None = None


class BackfillCost(Message):
    """What a backfill of a range does.

    rows: by source, of the windows that are trained. storage_calls: of planning them together, and
    of this estimate. changed: trained windows that it leaves although their data has changed.
    seconds: of planning and one job; None where only reading can count rows and none were trained.
    """

    pipeline: str
    line: str
    windows: list[WindowCost]
    rows: Rows
    storage_calls: int
    changed: list[str]
    seconds: float | None
    pace: Pace

    def named(self, *does: Does) -> list[str]:
        """Keys of the windows with which the backfill does one of these things."""
        return [each.window for each in self.windows if each.does in does]


def backfill_cost(
    target: LineTarget, windows: Sequence[Window], clock: Clock, *, reprocess: bool
) -> BackfillCost:
    """What `forebay run` and a backfill in Airflow do with these windows.

    Raises:
        DataError: when stored data cannot be planned.
        InfrastructureError: when a source does not answer.
    """
    began = time.perf_counter()
    pipeline, project, ledger = target.pipeline, target.project, target.ledger
    warm = warm_start_of(pipeline, target.chain, windows[0])
    asked = sorted([*([warm] if warm else []), *windows])
    again = {window.key for window in windows} if reprocess else set[str]()
    done = ledger.trained_plans(window.key for window in asked if window.key not in again)
    found, calls = _scanned(target, [each for each in asked if each.key not in done], clock)
    for key, plan in done.items():
        listed = {name: source.rows for name, source in plan.sources.items()}
        found[key] = WindowCost(window=key, does="skip", rows=listed)
    todo = [each.rows for each in found.values() if each.does in {"train", "train again"}]
    pace = pace_of(target.chain)
    seconds = _seconds(pace, todo)
    changed = set(ledger.data_changed({key: plan.generation for key, plan in done.items()}))
    changed |= changes_since(
        project.root, pipeline, project.sources, ledger, list(done.values())
    ).keys()
    return BackfillCost(
        pipeline=pipeline.name,
        line=target.line,
        windows=[found[window.key] for window in asked],
        rows={name: _sum([rows[name] for rows in todo]) for name in pipeline.use_names},
        storage_calls=calls,
        changed=[window.key for window in asked if window.key in changed],
        seconds=None if seconds is None else seconds + time.perf_counter() - began,
        pace=pace,
    )


def pace_of(chain: ModelChain) -> Pace:
    """The pace of a line's newest jobs and windows; defaults for what these do not show."""
    links = {(link.window, link.generation): link for link in chain.last(_NEWEST)}
    rows = {name: sum(link.trained(use).rows for use in link.seen) for name, link in links.items()}
    jobs = newest_jobs(chain.home, chain.pipeline, chain.line, _NEWEST)[0]
    first = {job.windows[0] for job in jobs if job.windows}  # they load TensorFlow and trace
    steady = [name for name in links if name not in first] or list(links)
    spans = (links[name].finished_at - links[name].started_at for name in steady)
    took, read = sum(span.total_seconds() for span in spans), sum(rows[name] for name in steady)
    per_row = took / read if read else _ROW_SECONDS
    starts = []
    for job in jobs:
        status = job.row.status
        if status.state == "succeeded" and status.ended_at and rows.keys() >= set(job.windows):
            whole = (status.ended_at - status.submitted_at).total_seconds()
            starts.append(max(0.0, whole - per_row * sum(rows[each] for each in job.windows)))
    return Pace(
        windows=len(links),
        job_seconds=median(starts) if starts else _JOB_SECONDS,
        row_seconds=per_row,
        window_rows=fmean(rows.values()) if rows else None,
    )


def _seconds(pace: Pace, windows: Sequence[Mapping[str, int | None]]) -> float | None:
    counts = [_sum(list(rows.values())) for rows in windows]
    known = [pace.window_rows if count is None else count for count in counts]
    if None in known:
        return None
    return pace.job_seconds + pace.row_seconds * sum(filter(None, known)) if known else 0.0


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _scanned(
    target: LineTarget, windows: Sequence[Window], clock: Clock
) -> tuple[dict[str, WindowCost], int]:
    """What is done with windows, by key, and how many storage calls it took to tell."""
    pipeline, project, ledger = target.pipeline, target.project, target.ledger
    trained, now, calls = target.chain.newest_of(window.key for window in windows), clock(), 0
    rows: dict[str, Rows] = {window.key: {} for window in windows if window.end <= now}
    over = [window for window in windows if window.key in rows]
    for name, shares in shares_of(pipeline, project.sources, over).items():
        spec = project.sources[source_of(name)]
        ready = spec.ready.model_copy(update={"wait": timedelta(), "late": "fail"})
        lister = SourceLister(
            spec.model_copy(update={"ready": ready}),
            project.root,
            ledger,
            clock,
            pipeline.dataset.plan_ahead_windows,
            lock_seconds=0.0,
            only_look=True,
        )
        operation = SourceOperation(lister, shares)
        for share in shares:
            with suppress(NotReadyError):
                if operation.has(share) or operation.look(share.window.key) is None:
                    listed = operation.listed[share.window.key]
                    rows[share.window.key][name] = listed.plan.rows
        calls += lister.storage_calls
    found = {}
    for window in windows:
        does: Does = "train again" if window.key in trained else "train"
        of_window, reason = rows.get(window.key, {}), ""
        if len(of_window) < len(pipeline.use_names):
            late = why_not_planned(project.root, pipeline, project.sources, ledger, window, clock)
            does, reason = "wait", f"{late.reason}; {late.next}"
        found[window.key] = WindowCost(window=window.key, does=does, rows=of_window, reason=reason)
    return found, calls
