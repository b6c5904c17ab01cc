"""What sources have found for windows, kept from the task that looks until the sink records it.

Below the ledger's folder, `.listings/<source>/<window>.listing` holds the newest answer of one
source for one window: a line of JSON that says what it is, then the tasks as an Arrow file.
`<window>.asked` holds when each pass first asked for it. A pass is one asking of one run; a
listing that was made for one pass is never an answer to another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pydantic import ValidationError

from forebay.datatasks.ledger import TRAINED, Ledger
from forebay.datatasks.listing_files import FOLDER, LISTING_SUFFIX, ListingHead, read_head
from forebay.datatasks.operations import Listed
from forebay.home.format import record_format
from forebay.system.files import make_folder, sync, write_atomically, writing
from forebay.system.message import Message

_LISTING, _ASKED = LISTING_SUFFIX, ".asked"
# Passes of one window whose first asking is remembered: newer ones push out the oldest.
_PASSES_MAX = 8


class Listing(NamedTuple):
    """A listing as it was stored."""

    head: ListingHead
    listed: Listed


class _Asked(Message):
    first: dict[str, datetime]


class Listings:
    """Listings of one pipeline. Written by the holder of a source's lock, read by anyone."""

    def __init__(self, ledger: Ledger) -> None:
        """Nothing is read or created yet."""
        self.folder = ledger.folder / FOLDER
        self._home = ledger.home

    def lock_file(self, source: str) -> Path:
        """The file whose lock is held while a source is looked at; its folder is there."""
        record_format(self._home)
        make_folder(self._source(source))
        return self.folder / f"{source}.lock"

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
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, listed.tasks.schema) as writer:
            writer.write_table(listed.tasks, max_chunksize=1 << 17)
        body = sink.getvalue()
        head = ListingHead(
            plan=listed.plan,
            asked_by=asked_by,
            listed_at=at,
            storage_calls=storage_calls,
            windows_scanned=windows_scanned,
            checksum=hashlib.sha256(body).hexdigest(),
        )
        record_format(self._home)
        content = head.model_dump_json().encode() + b"\n" + body.to_pybytes()
        write_atomically(self._path(listed.plan.source, window, _LISTING), content)
        return head

    def head(self, source: str, window: str) -> ListingHead | None:
        """What the newest answer of a source for a window is; None when there is none."""
        return read_head(self._path(source, window, _LISTING))

    def read(self, source: str, window: str) -> Listing | None:
        """The newest answer of a source for a window; None when there is no whole one."""
        try:
            first, _, body = self._path(source, window, _LISTING).read_bytes().partition(b"\n")
            head = ListingHead.model_validate_json(first)
        except (FileNotFoundError, ValidationError):
            return None
        if hashlib.sha256(body).hexdigest() != head.checksum:
            return None
        with pa.ipc.open_file(pa.py_buffer(body)) as reader:
            return Listing(head, Listed(head.plan, reader.read_all()))

    def first_asked(self, source: str, window: str) -> dict[str, datetime]:
        """When passes first asked for a window, the newest pass last."""
        try:
            content = self._path(source, window, _ASKED).read_bytes()
            return _Asked.model_validate_json(content).first
        except (FileNotFoundError, ValidationError):
            return {}

    def ask(self, source: str, window: str, asked_by: str, at: datetime) -> tuple[datetime, bool]:
        """When a pass first asked for a window, and whether that is now.

        Only for the holder of the source's lock.
        """
        known = self.first_asked(source, window)
        if asked_by in known:
            return known[asked_by], False
        kept = dict(list(known.items())[-(_PASSES_MAX - 1) :]) | {asked_by: at}
        record_format(self._home)
        content = _Asked(first=kept).model_dump_json()
        write_atomically(self._path(source, window, _ASKED), content)
        return at, True

    def windows(self) -> dict[str, set[str]]:
        """Keys of windows of which something is kept, and the sources that have listed them."""
        found: dict[str, set[str]] = {}
        if not self.folder.is_dir():
            return found
        for path in self.folder.glob("*/*"):
            if path.suffix in {_LISTING, _ASKED} and not path.name.startswith("."):
                sources = found.setdefault(path.stem, set())
                if path.suffix == _LISTING:
                    sources.add(path.parent.name)
        return found

    def drop(self, window: str, taken: Mapping[str, ListingHead] | None = None) -> None:
        """Forget a window, or of it only these answers, where no newer one took their place."""
        for path in sorted(self.folder.glob(f"*/{window}.*")):
            source = path.parent.name
            if taken is not None and not self._is_taken(taken.get(source), source, window):
                continue
            with writing(path):
                path.unlink(missing_ok=True)
                sync(path.parent)

    def drop_trained(self, ledger: Ledger) -> None:
        """Forget answers that a trained window's plan holds: nobody waits for them any more."""
        for window, sources in self.windows().items():
            trained = ledger.folder.glob(f"{window}/g*/{TRAINED}")
            last = max((path.stat().st_mtime for path in trained), default=0.0)
            older = [name for name in sources if self._changed_at(name, window) < last]
            plan = ledger.latest_plan(window) if older else None
            if plan is None:
                continue
            heads = {name: self.head(name, window) for name in older}
            self.drop(
                window,
                {
                    name: head
                    for name, head in heads.items()
                    if head is not None and head.plan == plan.sources.get(name)
                },
            )

    def _is_taken(self, taken: ListingHead | None, source: str, window: str) -> bool:
        return taken is not None and self.head(source, window) in (taken, None)

    def _changed_at(self, source: str, window: str) -> float:
        try:
            return self._path(source, window, _LISTING).stat().st_mtime
        except FileNotFoundError:
            return float("inf")  # recorded and dropped by its sink in the meantime

    def _source(self, source: str) -> Path:
        return self.folder / source

    def _path(self, source: str, window: str, suffix: str) -> Path:
        return self._source(source) / (window + suffix)
