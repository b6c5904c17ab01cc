"""Rows of windows and their plans, read and written inside somebody's transaction.

Light: imports neither Arrow nor NumPy. Every function takes a connection, so that what belongs
together is stored together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select, update

from forebay.datatasks.plans import WindowPlan
from forebay.errors import DataError, FencedError
from forebay.home.store import Stored
from forebay.home.tables import manifests, plans, requests, windows
from forebay.system.instants import now_us, to_us


class PlanRow(NamedTuple):
    """One generation of a window as it is stored."""

    id: int
    plan: WindowPlan
    is_trained: bool


def window_id(connection: Connection, pipeline: str, window: str) -> int | None:
    """The id of a window that was planned once; None for any other."""
    rows = select(windows.c.id).where(windows.c.pipeline == pipeline, windows.c.key == window)
    return connection.scalar(rows)


def planned_windows(connection: Connection, pipeline: str) -> list[str]:
    """Keys of the windows that have a plan, in the order of their ends, then of their starts."""
    rows = (
        select(windows.c.key)
        .where(windows.c.pipeline == pipeline)
        .where(select(plans.c.id).where(plans.c.window_id == windows.c.id).exists())
        .order_by(windows.c.ends_at, windows.c.starts_at)
    )
    return list(connection.scalars(rows))


def generations(connection: Connection, pipeline: str, window: str) -> list[int]:
    """Numbers of a window's generations, ascending."""
    rows = (
        select(plans.c.generation)
        .join(windows)
        .where(windows.c.pipeline == pipeline, windows.c.key == window)
        .order_by(plans.c.generation)
    )
    return list(connection.scalars(rows))


def last_generation(connection: Connection, pipeline: str, window: str) -> int:
    """The highest number that a generation of the window ever had; 0 before the first."""
    rows = select(windows.c.last_generation)
    rows = rows.where(windows.c.pipeline == pipeline, windows.c.key == window)
    return connection.scalar(rows) or 0


def plan_row(
    connection: Connection, pipeline: str, window: str, generation: int | None = None
) -> PlanRow | None:
    """One generation of a window, or its newest; None where it is not there."""
    rows = (
        select(plans.c.id, plans.c.document, plans.c.trained_at)
        .join(windows)
        .where(windows.c.pipeline == pipeline, windows.c.key == window)
        .order_by(plans.c.generation.desc())
        .limit(1)
    )
    if generation is not None:
        rows = rows.where(plans.c.generation == generation)
    found = connection.execute(rows).one_or_none()
    if found is None:
        return None
    plan = WindowPlan.model_validate_json(found.document)
    return PlanRow(found.id, plan, found.trained_at is not None)


def trained_generation(connection: Connection, pipeline: str, window: str) -> int | None:
    """The newest generation whose model is sealed."""
    rows = (
        select(plans.c.generation)
        .join(windows)
        .where(windows.c.pipeline == pipeline, windows.c.key == window)
        .where(plans.c.trained_at.is_not(None))
        .order_by(plans.c.generation.desc())
        .limit(1)
    )
    return connection.scalar(rows)


def manifests_of(
    connection: Connection, pipeline: str, window: str, generation: int
) -> dict[str, Stored]:
    """The manifests of one generation, by stream."""
    rows = (
        select(manifests)
        .join(plans, plans.c.id == manifests.c.plan_id)
        .join(windows, windows.c.id == plans.c.window_id)
        .where(windows.c.pipeline == pipeline, windows.c.key == window)
        .where(plans.c.generation == generation)
    )
    return {
        row.stream: Stored(name=row.name, checksum=row.checksum, size_bytes=row.size_bytes)
        for row in connection.execute(rows)
    }


def copy_newest(connection: Connection, pipeline: str, window: str) -> WindowPlan:
    """Make the newest plan's tasks a new generation. Reads no storage.

    Raises:
        DataError: when the window has no plan.
    """
    newest = plan_row(connection, pipeline, window)
    if newest is None:
        raise DataError(f"window {window} of pipeline {pipeline!r} has no plan: plan it first")
    stored = manifests_of(connection, pipeline, window, newest.plan.generation)
    generation = last_generation(connection, pipeline, window) + 1
    plan = newest.plan.model_copy(update={"generation": generation})
    store_plan(connection, pipeline, plan, stored)
    return plan


def store_plan(
    connection: Connection, pipeline: str, plan: WindowPlan, stored: dict[str, Stored]
) -> None:
    """Make a plan the newest of its window.

    Raises:
        FencedError: when the window has had a generation of this number meanwhile.
    """
    found = connection.execute(
        select(windows.c.id, windows.c.last_generation).where(
            windows.c.pipeline == pipeline, windows.c.key == plan.window
        )
    ).one_or_none()
    if found is not None and found.last_generation >= plan.generation:
        raise FencedError(f"another process planned window {plan.window} at the same time")
    newest = {"last_generation": plan.generation}
    if found is None:
        span = {"starts_at": to_us(plan.start), "ends_at": to_us(plan.end)}
        made = connection.execute(
            insert(windows).values(pipeline=pipeline, key=plan.window, **span, **newest)
        )
        of_window = _inserted(made.inserted_primary_key)
    else:
        of_window = found.id
        connection.execute(update(windows).where(windows.c.id == of_window).values(newest))
    row = connection.execute(
        insert(plans).values(
            window_id=of_window,
            generation=plan.generation,
            fingerprint=plan.fingerprint,
            document=plan.model_dump_json(),
            planned_at=now_us(),
        )
    )
    plan_id = _inserted(row.inserted_primary_key)
    if stored:
        rows = [
            {"plan_id": plan_id, "stream": stream, **each.model_dump()}
            for stream, each in stored.items()
        ]
        connection.execute(insert(manifests), rows)


def mark_trained(connection: Connection, pipeline: str, window: str, generation: int) -> bool:
    """Note that a generation's model is sealed. False when that generation is not there."""
    of_window = window_id(connection, pipeline, window)
    changed = connection.execute(
        update(plans)
        .where(plans.c.window_id == of_window, plans.c.generation == generation)
        .values(trained_at=now_us())
    )
    return changed.rowcount > 0


def forget(connection: Connection, pipeline: str, window: str) -> bool:
    """Remove all plans of a window and what was requested of it. False when it has none."""
    of_window = window_id(connection, pipeline, window)
    ids = list(connection.scalars(select(plans.c.id).where(plans.c.window_id == of_window)))
    connection.execute(delete(manifests).where(manifests.c.plan_id.in_(ids)))
    connection.execute(delete(plans).where(plans.c.id.in_(ids)))
    connection.execute(delete(requests).where(requests.c.window_id == of_window))
    return bool(ids)


def _inserted(key: Sequence[int] | None) -> int:
    if key is None:
        raise RuntimeError("a row was stored without a number")
    return key[0]
