"""What sources have added to the plan of an open window: rows, until it is closed.

Light: imports neither Arrow nor NumPy. Every function takes a connection, see `plan_rows`.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, delete, func, insert, select, update

from forebay.datatasks.plans.plan import SourcePlan, WindowPlan
from forebay.datatasks.plans.plan_rows import plan_id, store_manifests
from forebay.errors import FencedError
from forebay.home.database.tables import batches, borders, plans, slices, windows
from forebay.home.store.base import Stored
from forebay.system.instants import from_us, to_us


class SliceRow(NamedTuple):
    """An addition of one source. number: of the slice that went on; ascends.

    until: up to where the rows of a stream are the window's so far; its end, of a source that was
    listed as a whole. tasks: rows of a manifest, as an Arrow file; their hours are slices.
    """

    source: str
    number: int
    until: datetime
    plan: SourcePlan
    tasks: bytes


def slices_of(
    connection: Connection, pipeline: str, window: str, generation: int
) -> list[SliceRow]:
    """In the order in which they were added."""
    of_plan = slices.c.plan_id == plan_id(connection, pipeline, window, generation)
    rows = select(slices).where(of_plan).order_by(slices.c.number, slices.c.source)
    return [
        SliceRow(
            row.source,
            row.number,
            from_us(row.until),
            SourcePlan.of_document(row.document, f"a slice of window {window}"),
            row.tasks,
        )
        for row in connection.execute(rows)
    ]


def add_slice(
    connection: Connection,
    pipeline: str,
    window: str,
    generation: int,
    added: SliceRow,
    after: int | None,
) -> None:
    """Add to an open plan. after: the number of the source's addition that it continues from.

    Raises:
        FencedError: when it is not open any more, or another process has added to it since.
    """
    number = _open_plan(connection, pipeline, window, generation)
    of_source = (slices.c.plan_id == number, slices.c.source == added.source)
    if connection.scalar(select(func.max(slices.c.number)).where(*of_source)) != after:
        raise FencedError(f"another process plans window {window}")
    values = {
        "plan_id": number,
        "source": added.source,
        "number": added.number,
        "until": to_us(added.until),
        "document": added.plan.model_dump_json(),
        "tasks": added.tasks,
    }
    connection.execute(insert(slices).values(values))


def close_plan(
    connection: Connection, pipeline: str, plan: WindowPlan, stored: dict[str, Stored], count: int
) -> None:
    """Replace an open plan by what it has become, and its slices by manifests.

    count: how many there were when the manifests were made.

    Raises:
        FencedError: when it is not open any more, or another process has added to it since.
    """
    number = _open_plan(connection, pipeline, plan.window, plan.generation)
    of_plan = select(func.count()).select_from(slices).where(slices.c.plan_id == number)
    if connection.scalar(of_plan) != count:
        raise FencedError(f"another process plans window {plan.window}")
    values = {"document": plan.model_dump_json(), "fingerprint": plan.fingerprint}
    connection.execute(update(plans).where(plans.c.id == number).values(values))
    store_manifests(connection, number, stored)
    connection.execute(delete(slices).where(slices.c.plan_id == number))


def open_windows(connection: Connection, pipeline: str, keys: Iterable[str]) -> list[str]:
    """Those of these windows whose newest plan is open."""
    found = []
    newest = plans.c.generation == windows.c.last_generation
    rows = select(windows.c.key, plans.c.document).join(windows, windows.c.id == plans.c.window_id)
    for some in batches(keys):
        of_windows = rows.where(windows.c.pipeline == pipeline, windows.c.key.in_(some), newest)
        found += [
            row.key
            for row in connection.execute(of_windows)
            if WindowPlan.of_document(row.document, f"a plan of window {row.key}").is_open
        ]
    return found


def is_open(connection: Connection, pipeline: str, window: str) -> bool:
    """Whether any plan of a window is: another line may let one of its own grow."""
    rows = select(plans.c.document).join(windows).where(windows.c.pipeline == pipeline)
    documents = connection.scalars(rows.where(windows.c.key == window))
    return any(
        WindowPlan.of_document(each, f"a plan of window {window}").is_open for each in documents
    )


def drop_borders(
    connection: Connection, pipeline: str, source: str, instants: Iterable[datetime]
) -> None:
    """Forget borders of slices of a window of which no plan is open: nobody asks for them again."""
    of_source = (borders.c.pipeline == pipeline, borders.c.source == source)
    for some in batches(map(to_us, instants)):
        connection.execute(delete(borders).where(*of_source, borders.c.instant.in_(some)))


def _open_plan(connection: Connection, pipeline: str, window: str, generation: int) -> int:
    found = plan_id(connection, pipeline, window, generation)
    document = connection.scalar(select(plans.c.document).where(plans.c.id == found))
    if found is None or document is None:
        raise FencedError(f"window {window} was forgotten while it was trained")
    if not WindowPlan.of_document(document, f"a plan of window {window}").is_open:
        raise FencedError(f"another process has closed window {window}")
    return found
