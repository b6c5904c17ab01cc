"""What sources have found for windows, kept from the task that looks until the sink records it.

The newest answer of one source for one window: a row that says what it is, and its tasks as an
Arrow file in the store. A pass is one asking of one run; a listing that was made for one pass is
never an answer to another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, delete, insert, select

from forebay.datatasks.planning.operations import Listed
from forebay.datatasks.plans import listing_rows
from forebay.datatasks.plans.ledger import Ledger
from forebay.datatasks.plans.listing_rows import ListingHead
from forebay.datatasks.plans.manifests import arrow_bytes, read_arrow
from forebay.datatasks.plans.plan import WindowPlan
from forebay.home.database.tables import links, listings, passes, plans, windows
from forebay.home.store.base import LISTINGS
from forebay.home.store.open import own_store
from forebay.system.instants import from_us, to_us

# Passes of one window whose first asking is remembered: newer ones push out the oldest.
PASSES_MAX = 8


class Listing(NamedTuple):
    """A listing as it was stored."""

    head: ListingHead
    listed: Listed


class Listings:
    """Listings of one pipeline. Written by whoever lists, read by anyone."""

    def __init__(self, ledger: Ledger) -> None:
        self._pipeline = ledger.pipeline
        self._ledger = ledger

    def store(
        self,
        window: str,
        listed: Listed,
        *,
        declared: str,
        asked_by: str,
        at: datetime,
        storage_calls: int = 0,
        windows_scanned: int = 0,
    ) -> ListingHead:
        """Keep an answer; the window's earlier one of this source is replaced."""
        head = ListingHead(
            plan=listed.plan,
            declared=declared,
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
        return self._ledger.database.read(lambda rows: self._asked(rows, source, window))

    def ask(
        self, source: str, window: str, asked_by: str, at: datetime, since: datetime | None = None
    ) -> tuple[datetime, bool]:
        """When a pass first asked for a window, and whether that is now.

        since: what was asked earlier was asked by another run of the same name.
        """
        names = {"pipeline": self._pipeline, "source": source, "window": window}
        of_window = delete(passes).filter_by(**names)

        def work(rows: Connection) -> tuple[datetime, bool]:
            known = self._asked(rows, source, window)
            if since is not None and asked_by in known and known[asked_by] < since:
                rows.execute(of_window.where(passes.c.asked_by == asked_by))
                del known[asked_by]
            if asked_by in known:
                return known[asked_by], False
            oldest = list(known)[: max(0, len(known) - PASSES_MAX + 1)]
            rows.execute(of_window.where(passes.c.asked_by.in_(oldest)))
            values = {**names, "asked_by": asked_by, "asked_at": to_us(at)}
            rows.execute(insert(passes).values(values))
            return at, True

        return self._ledger.database.transact(work)

    def windows(self) -> dict[str, set[str]]:
        """Keys of windows of which something is kept, and the sources that have listed them."""
        asked = select(passes.c.window).where(passes.c.pipeline == self._pipeline)
        answered = select(listings.c.window, listings.c.source).where(
            listings.c.pipeline == self._pipeline
        )

        def work(rows: Connection) -> dict[str, set[str]]:
            found: dict[str, set[str]] = {window: set() for window in rows.scalars(asked)}
            for row in rows.execute(answered):
                found.setdefault(row.window, set()).add(row.source)
            return found

        return self._ledger.database.read(work)

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
            self._drop(rows, window, sources)

        self._ledger.database.transact(work)

    def drop_trained(self) -> None:
        """Forget answers that a trained window's plan holds: nobody waits for them any more."""

        def work(rows: Connection) -> None:
            for window, sources in self._held_by_trained_plans(rows).items():
                self._drop(rows, window, sources)

        self._ledger.database.transact(work)

    def _row(self, source: str, window: str) -> listing_rows.ListingRow | None:
        return self._ledger.database.read(
            lambda rows: listing_rows.listing(rows, self._pipeline, source, window)
        )

    def _asked(self, rows: Connection, source: str, window: str) -> dict[str, datetime]:
        names = {"pipeline": self._pipeline, "source": source, "window": window}
        asked = select(passes).filter_by(**names).order_by(passes.c.id)
        return {row.asked_by: from_us(row.asked_at) for row in rows.execute(asked)}

    def _held_by_trained_plans(self, rows: Connection) -> dict[str, set[str]]:
        on_key = (windows.c.pipeline == listings.c.pipeline) & (windows.c.key == listings.c.window)
        of_plan = (links.c.window_id == windows.c.id) & (links.c.generation == plans.c.generation)
        statement = (
            select(listings.c.window, listings.c.source, listings.c.document.label("head"))
            .add_columns(plans.c.document.label("plan"))
            .join(windows, on_key)
            .join(plans, plans.c.window_id == windows.c.id)
            .join(links, of_plan)
            .where(listings.c.pipeline == self._pipeline)
            .where(plans.c.generation == windows.c.last_generation)
            .where(links.c.recorded_at > listings.c.stored_at)
        )
        found: dict[str, set[str]] = {}
        for row in rows.execute(statement):
            plan = WindowPlan.of_document(row.plan, f"a plan of window {row.window}")
            head = ListingHead.of_document(row.head, f"a listing of window {row.window}")
            if head.plan == plan.sources.get(row.source):
                found.setdefault(row.window, set()).add(row.source)
        return found

    def _drop(self, rows: Connection, window: str, sources: Iterable[str] | None) -> None:
        for table in (listings, passes):
            statement = delete(table).filter_by(pipeline=self._pipeline, window=window)
            if sources is not None:
                statement = statement.where(table.c.source.in_(list(sources)))
            rows.execute(statement)
