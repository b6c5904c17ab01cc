"""What sources have found for windows, kept from the task that looks until the sink records it.

The newest answer of one source for one window: a row that says what it is, and its tasks as an
Arrow file in the store. A pass is one asking of one run; a listing that was made for one pass is
never an answer to another.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from forebay.datatasks.planning.operations import Listed
from forebay.datatasks.plans import listing_rows
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.listing_rows import ListingHead
from forebay.datatasks.plans.manifests import arrow_bytes, read_arrow
from forebay.home.store.base import LISTINGS
from forebay.home.store.open import own_store


class Listing(NamedTuple):
    """A listing as it was stored."""

    head: ListingHead
    listed: Listed


class Listings:
    """Listings of one pipeline. Written by the holder of a source's lock, read by anyone."""

    def __init__(self, ledger: Ledger) -> None:
        self._pipeline = ledger.pipeline
        self._ledger = ledger

    def looking_at(self, source: str, wait_seconds: float) -> AbstractContextManager[None]:
        """Held while a source is looked at: one scan at a time.

        Raises:
            InfrastructureError: when another process looks for longer than that.
        """
        name = f"scan-{self._pipeline}-{source}"
        return self._ledger.database.exclusive(name, wait_seconds)

    def store(
        self,
        window: str,
        listed: Listed,
        *,
        asked_by: str,
        at: datetime,
        storage_calls: int = 0,
        windows_scanned: int = 0,
    ) -> ListingHead:
        """Keep an answer; the window's earlier one of this source is replaced."""
        head = ListingHead(
            plan=listed.plan,
            asked_by=asked_by,
            listed_at=at,
            storage_calls=storage_calls,
            windows_scanned=windows_scanned,
        )
        self._ledger.database.prepare()
        folder = f"{LISTINGS}/{self._pipeline}/{window}"
        store = own_store(self._ledger.home)
        stored = store.put(folder, listed.plan.source, arrow_bytes(listed.tasks))
        self._ledger.database.transact(
            lambda rows: listing_rows.store_listing(rows, self._pipeline, window, head, stored)
        )
        return head

    def head(self, source: str, window: str) -> ListingHead | None:
        """What the newest answer of a source for a window is; None when there is none."""
        found = self._row(source, window)
        return found.head if found is not None else None

    def read(self, source: str, window: str) -> Listing | None:
        """The newest answer of a source for a window; None when there is none.

        Raises:
            DataError: when its tasks are not as they were stored.
        """
        found = self._row(source, window)
        if found is None:
            return None
        tasks = read_arrow(self._ledger.store.path(found.stored))
        return Listing(found.head, Listed(found.head.plan, tasks))

    def first_asked(self, source: str, window: str) -> dict[str, datetime]:
        """When passes first asked for a window, the newest pass last."""
        return self._ledger.database.read(
            lambda rows: listing_rows.first_asked(rows, self._pipeline, source, window)
        )

    def ask(
        self,
        source: str,
        window: str,
        asked_by: str,
        at: datetime,
        since: datetime | None = None,
    ) -> tuple[datetime, bool]:
        """When a pass first asked for a window, and whether that is now.

        since: what was asked earlier was asked by another run of the same name.
        """
        return self._ledger.database.transact(
            lambda rows: listing_rows.ask(rows, self._pipeline, source, window, asked_by, at, since)
        )

    def windows(self) -> dict[str, set[str]]:
        """Keys of windows of which something is kept, and the sources that have listed them."""
        return self._ledger.database.read(
            lambda rows: listing_rows.windows_kept(rows, self._pipeline)
        )

    def drop(self, window: str, taken: Mapping[str, ListingHead] | None = None) -> None:
        """Forget a window, or of it only these answers, where no newer one took their place."""

        def work(rows: Connection) -> None:
            sources = None
            if taken is not None:
                sources = [
                    source
                    for source, head in taken.items()
                    if (found := listing_rows.listing(rows, self._pipeline, source, window)) is None
                    or found.head == head
                ]
            listing_rows.drop_listings(rows, self._pipeline, window, sources)
            listing_rows.drop_passes(rows, self._pipeline, window, sources)

        self._ledger.database.transact(work)

    def drop_trained(self) -> None:
        """Forget answers that a trained window's plan holds: nobody waits for them any more."""

        def work(rows: Connection) -> None:
            held = listing_rows.held_by_trained_plans(rows, self._pipeline)
            for window, sources in held.items():
                listing_rows.drop_listings(rows, self._pipeline, window, sources)
                listing_rows.drop_passes(rows, self._pipeline, window, sources)

        self._ledger.database.transact(work)

    def _row(self, source: str, window: str) -> listing_rows.ListingRow | None:
        return self._ledger.database.read(
            lambda rows: listing_rows.listing(rows, self._pipeline, source, window)
        )
