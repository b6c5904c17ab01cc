"""What sources have found for windows, and who asked when: rows, without the tasks.

Light: whoever reads them imports neither Arrow nor NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, Table, delete, insert, select

from forebay.datatasks.plans.plan import SourcePlan, WindowPlan
from forebay.home.database.open import database_of
from forebay.home.database.tables import links, listings, passes, plans, windows
from forebay.home.paths import Home
from forebay.home.store.base import Stored
from forebay.home.store.garbage import require_unburied
from forebay.system.instants import from_us, now_us, to_us
from forebay.system.message import Message

# Passes of one window whose first asking is remembered: newer ones push out the oldest.
PASSES_MAX = 8


class ListingHead(Message):
    """What a listing is. storage_calls, windows_scanned: of the scan that found it."""

    plan: SourcePlan
    asked_by: str
    listed_at: datetime
    storage_calls: int
    windows_scanned: int


class ListingRow(NamedTuple):
    """A listing, and where its tasks are stored."""

    head: ListingHead
    stored: Stored


def listed_for(home: Home, pipeline: str, source: str, window: str) -> str | None:
    """The pass that the newest listing was made for; None without one."""
    found = database_of(home).read(lambda rows: listing(rows, pipeline, source, window))
    return found.head.asked_by if found is not None else None


def listing(connection: Connection, pipeline: str, source: str, window: str) -> ListingRow | None:
    """The newest answer of a source for a window; None when there is none."""
    found = connection.execute(
        select(listings).where(
            listings.c.pipeline == pipeline,
            listings.c.source == source,
            listings.c.window == window,
        )
    ).one_or_none()
    if found is None:
        return None
    stored = Stored(name=found.name, checksum=found.checksum, size_bytes=found.size_bytes)
    head = ListingHead.of_document(found.document, f"a listing of window {window}")
    return ListingRow(head, stored)


def store_listing(
    connection: Connection, pipeline: str, window: str, head: ListingHead, stored: Stored
) -> None:
    """Keep an answer; the window's earlier one of this source is replaced."""
    require_unburied(connection, [stored.name])
    drop_listings(connection, pipeline, window, [head.plan.source])
    connection.execute(
        insert(listings).values(
            pipeline=pipeline,
            source=head.plan.source,
            window=window,
            asked_by=head.asked_by,
            document=head.model_dump_json(),
            stored_at=now_us(),
            **stored.model_dump(),
        )
    )


def drop_listings(
    connection: Connection, pipeline: str, window: str, sources: Iterable[str] | None = None
) -> None:
    """Forget what sources found for a window: all of them, or these."""
    _drop(connection, listings, pipeline, window, sources)


def drop_passes(
    connection: Connection, pipeline: str, window: str, sources: Iterable[str] | None = None
) -> None:
    """Forget who asked for a window: of all sources, or of these."""
    _drop(connection, passes, pipeline, window, sources)


def first_asked(
    connection: Connection, pipeline: str, source: str, window: str
) -> dict[str, datetime]:
    """When passes first asked for a window, the newest pass last."""
    rows = (
        select(passes.c.asked_by, passes.c.asked_at)
        .where(passes.c.pipeline == pipeline, passes.c.source == source, passes.c.window == window)
        .order_by(passes.c.id)
    )
    return {row.asked_by: from_us(row.asked_at) for row in connection.execute(rows)}


def ask(
    connection: Connection,
    pipeline: str,
    source: str,
    window: str,
    asked_by: str,
    at: datetime,
    since: datetime | None = None,
) -> tuple[datetime, bool]:
    """When a pass first asked for a window, and whether that is now.

    since: what was asked earlier was asked by another run of the same name.
    """
    known = first_asked(connection, pipeline, source, window)
    if since is not None and asked_by in known and known[asked_by] < since:
        of_window = (
            passes.c.pipeline == pipeline,
            passes.c.source == source,
            passes.c.window == window,
        )
        connection.execute(delete(passes).where(*of_window, passes.c.asked_by == asked_by))
        del known[asked_by]
    if asked_by in known:
        return known[asked_by], False
    oldest = list(known)[: max(0, len(known) - PASSES_MAX + 1)]
    connection.execute(
        delete(passes).where(
            passes.c.pipeline == pipeline,
            passes.c.source == source,
            passes.c.window == window,
            passes.c.asked_by.in_(oldest),
        )
    )
    values = {"pipeline": pipeline, "source": source, "window": window, "asked_by": asked_by}
    connection.execute(insert(passes).values(asked_at=to_us(at), **values))
    return at, True


def windows_kept(connection: Connection, pipeline: str) -> dict[str, set[str]]:
    """Keys of windows of which something is kept, and the sources that have listed them."""
    asked = connection.scalars(select(passes.c.window).where(passes.c.pipeline == pipeline))
    found: dict[str, set[str]] = {window: set() for window in asked}
    rows = select(listings.c.window, listings.c.source).where(listings.c.pipeline == pipeline)
    for row in connection.execute(rows):
        found.setdefault(row.window, set()).add(row.source)
    return found


def held_by_trained_plans(connection: Connection, pipeline: str) -> Mapping[str, set[str]]:
    """Sources by window whose listing a trained plan holds: nobody waits for them any more."""
    rows = (
        select(listings.c.window, listings.c.source, listings.c.document.label("head"))
        .add_columns(plans.c.document.label("plan"))
        .join(
            windows,
            (windows.c.pipeline == listings.c.pipeline) & (windows.c.key == listings.c.window),
        )
        .join(plans, plans.c.window_id == windows.c.id)
        .join(
            links,
            (links.c.window_id == windows.c.id) & (links.c.generation == plans.c.generation),
        )
        .where(listings.c.pipeline == pipeline)
        .where(plans.c.generation == windows.c.last_generation)
        .where(links.c.recorded_at > listings.c.stored_at)
    )
    found: dict[str, set[str]] = {}
    for row in connection.execute(rows):
        plan = WindowPlan.of_document(row.plan, f"a plan of window {row.window}")
        head = ListingHead.of_document(row.head, f"a listing of window {row.window}")
        if head.plan == plan.sources.get(row.source):
            found.setdefault(row.window, set()).add(row.source)
    return found


def _drop(
    connection: Connection,
    table: Table,
    pipeline: str,
    window: str,
    sources: Iterable[str] | None,
) -> None:
    rows = delete(table).where(table.c.pipeline == pipeline, table.c.window == window)
    if sources is not None:
        rows = rows.where(table.c.source.in_(list(sources)))
    connection.execute(rows)
