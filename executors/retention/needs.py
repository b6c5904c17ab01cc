"""Which links something depends on, by query: what serves, and what will be built on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    false,
    func,
    select,
    true,
    union_all,
)

from forebay.datatasks.window_order import in_order, place
from forebay.executors.job.job_rows import is_unended
from forebay.executors.model_line.rows.line_rows import is_newest, next_link
from forebay.executors.retention.rule import Needs
from forebay.home.rows import batches
from forebay.home.tables import job_windows, jobs, links, served, windows

_links = links.alias("links_before")
_OF_LINE = links.c.line_id == bindparam("line_id")
_LINE_JOBS = (jobs.c.pipeline == bindparam("pipeline")) & (jobs.c.line == bindparam("line"))
_OF_PIPELINE = windows.c.pipeline == bindparam("pipeline")


def needs_of(
    connection: Connection, pipeline: str, line: str, line_id: int, of: Iterable[int]
) -> Needs:
    """What is needed of some links of a line; the number of statements depends only on these."""
    asked = {"pipeline": pipeline, "line": line, "line_id": line_id}
    used = connection.execute(_USED, asked).all()
    started_from = {link for link, serves in used if not serves and link is not None}
    for ids in batches(of):
        built = {"line_id": line_id, "ids": ids}
        started_from.update(connection.scalars(_NOT_BUILT_ON, built))
    return Needs(frozenset(link for link, serves in used if serves), frozenset(started_from))


def _not_built_on() -> Select[Any]:
    """Newest links that the next window's is not built on: the line's last, and before breaks."""
    return (
        select(links.c.id)
        .where(_OF_LINE, links.c.id.in_(bindparam("ids", expanding=True)), is_newest())
        .where(next_link("parent_id").is_distinct_from(links.c.id))
    )


def _before_untrained() -> Select[Any]:
    """For each unended job, the link that its first untrained window starts from."""
    todo = _job_windows(func.min(job_windows.c.position), links.c.id.is_(None)).subquery("todo")
    before = (
        select(_links.c.id)
        .where(_links.c.line_id == bindparam("line_id"))
        .where(place(_links) < place())
        .order_by(*(each.desc() for each in in_order(_links)), _links.c.generation.desc())
        .limit(1)
        .correlate(windows)
        .scalar_subquery()
    )
    return (
        select(before, false())
        .select_from(todo)
        .join(
            job_windows,
            (job_windows.c.job_row == todo.c.job_row) & (job_windows.c.position == todo.c.position),
        )
        .join(windows, _OF_PIPELINE & (windows.c.key == job_windows.c.window))
    )


def _last_of_jobs() -> Select[Any]:
    """Links of the last windows of unended jobs: their models may have to be exported."""
    last = _job_windows(func.max(job_windows.c.position)).subquery("last")
    return (
        select(links.c.id, false())
        .select_from(last)
        .join(
            job_windows,
            (job_windows.c.job_row == last.c.job_row) & (job_windows.c.position == last.c.position),
        )
        .join(windows, _OF_PIPELINE & (windows.c.key == job_windows.c.window))
        .join(links, links.c.window_id == windows.c.id)
        .where(_OF_LINE, links.c.generation == job_windows.c.generation)
    )


def _job_windows(position: ColumnElement[int], *conditions: ColumnElement[bool]) -> Select[Any]:
    """One position of each unended job, over its windows and their links."""
    return (
        select(job_windows.c.job_row, position.label("position"))
        .join(jobs, jobs.c.id == job_windows.c.job_row)
        .join(
            windows,
            (windows.c.pipeline == jobs.c.pipeline) & (windows.c.key == job_windows.c.window),
        )
        .outerjoin(
            links,
            (links.c.window_id == windows.c.id)
            & (links.c.generation == job_windows.c.generation)
            & _OF_LINE,
        )
        .where(_LINE_JOBS, is_unended(), *conditions)
        .group_by(job_windows.c.job_row)
    )


# Built once, since building such a statement takes longer than executing it.
_NOT_BUILT_ON = _not_built_on()
_USED = union_all(
    select(links.c.id, true())
    .join(served, (served.c.line_id == links.c.line_id) & (served.c.window_id == links.c.window_id))
    .where(served.c.line_id == bindparam("line_id"), served.c.generation == links.c.generation),
    _before_untrained(),
    _last_of_jobs(),
)
