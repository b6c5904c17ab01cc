"""Rows that cannot all be true: what foreign keys and unique names do not prevent."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import ColumnElement, Table, and_, exists, or_, select, tuple_

from forebay.home.tables import (
    STORED,
    forgotten,
    job_windows,
    jobs,
    lines,
    link_rows,
    links,
    plans,
    requests,
    seals,
    served,
    tombstones,
    windows,
)

_parents = links.alias("parents")
_parent_windows = windows.alias("parent_windows")
_parent_rows = link_rows.alias("parent_rows")


class Rule(NamedTuple):
    """Rows that are wrong. is_wrong: may use what `described` joins. problem: what is wrong."""

    table: Table
    is_wrong: ColumnElement[bool]
    problem: str


def _of_parent() -> ColumnElement[bool]:
    return _parents.c.id == links.c.parent_id


def _begins_elsewhere() -> ColumnElement[bool]:
    """Whether a model starts from other rows than the model that it was built on had seen."""
    sums = ("rows", "sum", "sum_of_squares")
    return exists(
        select(_parent_rows.c.link_id)
        .where(_parent_rows.c.link_id == links.c.parent_id)
        .where(_parent_rows.c.source == link_rows.c.source)
        .where(or_(*(_parent_rows.c[f"seen_{x}"] != link_rows.c[f"base_{x}"] for x in sums)))
    )


def _built_on_a_later_window() -> ColumnElement[bool]:
    of_parent = tuple_(_parent_windows.c.ends_at, _parent_windows.c.starts_at)
    later = of_parent >= tuple_(windows.c.ends_at, windows.c.starts_at)
    of_window = _parent_windows.c.id == _parents.c.window_id
    return exists(select(_parents.c.id).where(_of_parent(), of_window, later))


def _leased_elsewhere() -> ColumnElement[bool]:
    other = or_(jobs.c.pipeline != lines.c.pipeline, jobs.c.line != lines.c.line)
    return exists(select(jobs.c.id).where(jobs.c.job_id == lines.c.lease_job, other))


def _never_planned() -> ColumnElement[bool]:
    of_window = and_(windows.c.pipeline == jobs.c.pipeline, windows.c.key == job_windows.c.window)
    newer = windows.c.last_generation < job_windows.c.generation
    return exists(select(windows.c.id).where(of_window, newer))


def _trained() -> ColumnElement[bool]:
    of_line = and_(links.c.line_id == seals.c.line_id, links.c.window_id == seals.c.window_id)
    return exists(select(links.c.id).where(of_line, links.c.generation == seals.c.generation))


_HIGHER = "has a generation that is higher than the last one of its window"
RULES = (
    Rule(windows, windows.c.ends_at <= windows.c.starts_at, "ends before it begins"),
    *(
        Rule(table, table.c.generation > windows.c.last_generation, _HIGHER)
        for table in (plans, links, requests, seals, served)
    ),
    Rule(job_windows, _never_planned(), _HIGHER),
    Rule(forgotten, forgotten.c.generation > windows.c.last_generation, _HIGHER),
    Rule(
        links,
        exists(select(_parents.c.id).where(_of_parent(), _parents.c.line_id != links.c.line_id)),
        "was built on a model of another line",
    ),
    Rule(links, _built_on_a_later_window(), "was built on a window that is not earlier"),
    Rule(link_rows, _begins_elsewhere(), "starts from other rows than its parent model had seen"),
    Rule(seals, _trained(), "exists for a window that was already trained to its end"),
    Rule(served, windows.c.pipeline != lines.c.pipeline, "serves a model of another pipeline"),
    Rule(lines, _leased_elsewhere(), "is leased to a job of another line"),
    Rule(
        lines,
        (lines.c.lease_epoch == 0) != (lines.c.lease_job.is_(None)),
        "has a lease without a job, or a job without a lease",
    ),
    Rule(
        jobs,
        or_(jobs.c.run_epoch > jobs.c.epoch, jobs.c.cancel_epoch > jobs.c.epoch),
        "has an epoch that is higher than that of its newest owner",
    ),
    *(
        Rule(
            table,
            exists(select(tombstones.c.name).where(tombstones.c.name == table.c.name)),
            "names bytes that were collected as garbage",
        )
        for table in STORED
    ),
)
