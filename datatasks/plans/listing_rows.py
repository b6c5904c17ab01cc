"""What sources have found for windows: rows, without the tasks.

Light: whoever reads them imports neither Arrow nor NumPy.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from forebay.datatasks.plans.plan import SourcePlan
from forebay.home.database.open import database_of
from forebay.home.database.tables import listings
from forebay.home.paths import Home
from forebay.home.store.base import Stored
from forebay.home.store.garbage import require_unburied
from forebay.system.instants import now_us
from forebay.system.message import Message


class ListingHead(Message):
    """What a listing is. storage_calls, windows_scanned: of the scan that found it.

    declared: see `declaration_of`. listed_at: when the source was asked, or before.
    """

    plan: SourcePlan
    declared: str
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
    names = {"pipeline": pipeline, "source": source, "window": window}
    found = connection.execute(select(listings).filter_by(**names)).one_or_none()
    if found is None:
        return None
    stored = Stored(name=found.name, checksum=found.checksum, size_bytes=found.size_bytes)
    head = ListingHead.of_document(found.document, f"a listing of window {window}")
    return ListingRow(head, stored)


def store_listing(
    connection: Connection, pipeline: str, window: str, head: ListingHead, stored: Stored
) -> None:
    """Make it the newest answer, unless there is one of a later look: this one came too late."""
    require_unburied(connection, [stored.name])
    known = listing(connection, pipeline, head.plan.source, window)
    if known is not None and known.head.listed_at > head.listed_at:
        return
    names = {"pipeline": pipeline, "source": head.plan.source, "window": window}
    connection.execute(delete(listings).filter_by(**names))
    connection.execute(
        insert(listings).values(
            asked_by=head.asked_by,
            document=head.model_dump_json(),
            stored_at=now_us(),
            **names,
            **stored.model_dump(),
        )
    )
