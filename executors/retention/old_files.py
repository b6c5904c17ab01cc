"""Stored files of older links, found and forgotten in the caller's transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    bindparam,
    delete,
    false,
    func,
    select,
    true,
    union_all,
)

from forebay.datatasks.plans.window_order import IN_ORDER, in_order, place
from forebay.executors.job.job_rows import is_unended
from forebay.executors.model_line.link import FileKind
from forebay.executors.model_line.rows.judgement_rows import is_whole
from forebay.executors.model_line.rows.line_rows import is_newest, next_link
from forebay.executors.retention.old_plans import IN_RANGE, older_than, passed, windows_like
from forebay.executors.retention.rule import LinkFile, Needs, WindowsKept, may_go
from forebay.home.database.tables import (
    batches,
    job_windows,
    jobs,
    judgements,
    link_files,
    links,
    served,
    windows,
)

_links = links.alias("links_before")
_OF_LINE_ID = links.c.line_id == bindparam("line_id")
_LINE_JOBS = (jobs.c.pipeline == bindparam("pipeline")) & (jobs.c.line == bindparam("line"))
_OF_PIPELINE = windows.c.pipeline == bindparam("pipeline")


def _not_built_on() -> Select[Any]:
    """Newest links that the next window's is not built on: the line's last, and before breaks."""
    return (
        select(links.c.id)
        .where(_OF_LINE_ID, links.c.id.in_(bindparam("ids", expanding=True)), is_newest())
        .where(next_link("parent_id").is_distinct_from(links.c.id))
    )


def _before_untrained() -> Select[int, bool]:
    """For each unended job, the link that its first untrained window starts from."""
    before = (
        select(_links.c.id)
        .where(_links.c.line_id == bindparam("line_id"))
        .where(place(_links) < place())
        .order_by(*(each.desc() for each in in_order(_links)), _links.c.generation.desc())
        .limit(1)
        .correlate(windows)
        .scalar_subquery()
    )
    return _of_jobs(before, func.min(job_windows.c.position), links.c.id.is_(None))


def _last_of_jobs() -> Select[int, bool]:
    """Links of the last windows of unended jobs: their models may have to be exported."""
    return (
        _of_jobs(links.c.id, func.max(job_windows.c.position))
        .join(links, links.c.window_id == windows.c.id)
        .where(_OF_LINE_ID, links.c.generation == job_windows.c.generation)
    )


def _of_jobs(
    link: ColumnElement[int], position: ColumnElement[int], *conditions: ColumnElement[bool]
) -> Select[int, bool]:
    """`link` at one position of each unended job, found over its windows and their links."""
    chosen = (
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
            & _OF_LINE_ID,
        )
        .where(_LINE_JOBS, is_unended(), *conditions)
        .group_by(job_windows.c.job_row)
        .subquery("chosen")
    )
    return (
        select(link, false())
        .select_from(chosen)
        .join(
            job_windows,
            (job_windows.c.job_row == chosen.c.job_row)
            & (job_windows.c.position == chosen.c.position),
        )
        .join(windows, _OF_PIPELINE & (windows.c.key == job_windows.c.window))
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


_OF_LINE = links.c.line_id == bindparam("line")
_TRAINED = windows_like(
    select(links.c.id).where(_OF_LINE, links.c.window_id == windows.c.id).exists()
)
_FILES = (
    select(link_files, links.c.generation, windows.c.key, windows.c.starts_at)
    .add_columns(windows.c.ends_at, is_newest().label("newest"))
    .add_columns(judgements.c.document)
    .select_from(link_files)
    .join(links, links.c.id == link_files.c.link_id)
    .join(windows, windows.c.id == links.c.window_id)
    .outerjoin(judgements, judgements.c.link_id == links.c.id)
    .where(_OF_LINE, windows.c.pipeline == bindparam("pipeline"), IN_RANGE)
    .where(link_files.c.kind.in_(bindparam("kinds", expanding=True)))
    .order_by(*IN_ORDER, links.c.generation)
)
_FORGET = delete(link_files).where(link_files.c.name.in_(bindparam("names", expanding=True)))


def of_old_windows(
    connection: Connection, pipeline: str, line_id: int, kept: WindowsKept, most: int | None = None
) -> list[LinkFile]:
    """Stored files of a line's old windows, whether something needs them or not.

    What is found once stays old: only what needs it may change.

    most: how many windows of each kind are looked at, the newest of those that keep nothing; None
    for all of them.
    """
    asked: dict[str, object] = {"pipeline": pipeline, "line": line_id}
    kinds: dict[int, list[str]] = {}
    for kind in get_args(FileKind):
        kinds.setdefault(kept.of_kind(kind), []).append(kind)
    found: list[LinkFile] = []
    for count in passed(connection, pipeline, kinds):
        older = older_than(connection, _TRAINED, asked, count, most)
        if older is not None:
            values = {**asked, **older.asked(), "kinds": kinds[count]}
            found += map(_file, connection.execute(_FILES, values))
    return found


def that_may_go(
    connection: Connection, pipeline: str, line: str, line_id: int, found: Sequence[LinkFile]
) -> list[LinkFile]:
    """The files of old windows that may be removed now, the oldest first."""
    if not found:
        return []
    asked = {"pipeline": pipeline, "line": line, "line_id": line_id}
    used = connection.execute(_USED, asked).all()
    started_from = {link for link, serves in used if not serves and link is not None}
    for ids in batches({file.link for file in found}):
        built = {"line_id": line_id, "ids": ids}
        started_from.update(connection.scalars(_NOT_BUILT_ON, built))
    needs = Needs(frozenset(link for link, serves in used if serves), frozenset(started_from))
    return sorted(
        (file for file in found if may_go(file, needs)),
        key=lambda file: (file.order, file.generation),
    )


def forget_files(connection: Connection, files: Sequence[LinkFile]) -> None:
    """Forget these files: their bytes may be removed once the transaction is committed."""
    for names in batches(file.name for file in files):
        connection.execute(_FORGET, {"names": names})


def _file(row: Row[Any]) -> LinkFile:
    return LinkFile(
        link=row.link_id,
        kind=row.kind,
        name=row.name,
        size_bytes=row.size_bytes,
        window=row.key,
        generation=row.generation,
        order=(row.ends_at, row.starts_at),
        judged=is_whole(row.document),
        replaced=not row.newest,
    )
