"""Which links something depends on, by query: what serves, what is to be built on."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, and_, func, or_, select

from forebay.datatasks.window_order import IN_ORDER
from forebay.executors.job.job_rows import is_unended, of_line
from forebay.executors.model_line.link_rows import is_newest, is_of
from forebay.executors.retention.rule import Needs
from forebay.home.tables import job_windows, jobs, links, served, windows

_links = links.alias("links_before")
_windows = windows.alias("windows_before")


def needs_of(connection: Connection, pipeline: str, line: str, line_id: int) -> Needs:
    """What is needed of a line; in as many statements whatever there is."""
    serves = connection.scalars(select(served.c.link_id).where(served.c.line_id == line_id))
    started_from = (
        _not_built_on(line_id),
        _before_untrained(pipeline, line, line_id),
        _last_of_jobs(pipeline, line, line_id),
    )
    found = [link for query in started_from for link in connection.scalars(query)]
    return Needs(frozenset(serves), frozenset(link for link in found if link is not None))


def _not_built_on(line_id: int) -> Select[Any]:
    """Newest links that the next window's is not built on: the line's last, and before breaks."""
    next_parent = func.lead(links.c.parent_id).over(order_by=IN_ORDER).label("next_parent")
    chained = (
        select(links.c.id, next_parent)
        .join(windows, windows.c.id == links.c.window_id)
        .where(is_of(line_id), is_newest())
        .subquery("chained")
    )
    return select(chained.c.id).where(chained.c.next_parent.is_distinct_from(chained.c.id))


def _before_untrained(pipeline: str, line: str, line_id: int) -> Select[Any]:
    """For each job without an end, what the first window starts from that is not trained yet."""
    todo = (
        _job_windows(pipeline, line, line_id, func.min(job_windows.c.position))
        .where(links.c.id.is_(None))
        .subquery("todo")
    )
    earlier = or_(
        _windows.c.ends_at < windows.c.ends_at,
        and_(
            _windows.c.ends_at == windows.c.ends_at,
            _windows.c.starts_at < windows.c.starts_at,
        ),
    )
    before = (
        select(_links.c.id)
        .join(_windows, _windows.c.id == _links.c.window_id)
        .where(_links.c.line_id == line_id, earlier)
        .order_by(
            _windows.c.ends_at.desc(), _windows.c.starts_at.desc(), _links.c.generation.desc()
        )
        .limit(1)
        .correlate(windows)
        .scalar_subquery()
    )
    return (
        select(before)
        .select_from(todo)
        .join(
            job_windows,
            (job_windows.c.job_row == todo.c.job_row) & (job_windows.c.position == todo.c.position),
        )
        .join(
            windows,
            (windows.c.pipeline == pipeline) & (windows.c.key == job_windows.c.window),
        )
    )


def _last_of_jobs(pipeline: str, line: str, line_id: int) -> Select[Any]:
    """Links of the last windows of jobs without an end: their models may have to be exported."""
    last = _job_windows(pipeline, line, line_id, func.max(job_windows.c.position)).subquery("last")
    return (
        select(links.c.id)
        .select_from(last)
        .join(
            job_windows,
            (job_windows.c.job_row == last.c.job_row) & (job_windows.c.position == last.c.position),
        )
        .join(windows, (windows.c.pipeline == pipeline) & (windows.c.key == job_windows.c.window))
        .join(links, links.c.window_id == windows.c.id)
        .where(is_of(line_id), links.c.generation == job_windows.c.generation)
    )


def _job_windows(pipeline: str, line: str, line_id: int, position: Any) -> Select[Any]:  # noqa: ANN401 - an aggregate
    """One position of each job without an end, over its windows and the links that they have."""
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
            & (links.c.line_id == line_id),
        )
        .where(of_line(pipeline, line), is_unended())
        .group_by(job_windows.c.job_row)
    )
