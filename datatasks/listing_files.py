"""Where listings are stored, and what the first line of one says. Reads no tasks.

Light: whoever reads a head imports neither Arrow nor NumPy.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from pydantic import ValidationError

from forebay.datatasks.plans import SourcePlan
from forebay.home.paths import Home
from forebay.system.message import Message

FOLDER = ".listings"
LISTING_SUFFIX = ".listing"
_HEAD_BYTES_MAX = 1 << 20


class ListingHead(Message):
    """What a listing is. storage_calls, windows_scanned: of the scan that found it."""

    plan: SourcePlan
    asked_by: str
    listed_at: datetime
    storage_calls: int
    windows_scanned: int
    checksum: str


def listing_path(home: Home, pipeline: str, source: str, window: str) -> Path:
    """The file with the newest answer of a source for a window."""
    return home.ledger(pipeline) / FOLDER / source / (window + LISTING_SUFFIX)


def read_head(path: Path) -> ListingHead | None:
    """The head of a listing; None where there is none, or no readable one.

    Whether the listing is whole is decided by whoever reads its tasks.
    """
    try:
        with path.open("rb") as stream:
            return ListingHead.model_validate_json(stream.readline(_HEAD_BYTES_MAX))
    except (FileNotFoundError, ValidationError):
        return None


def listed_for(home: Home, pipeline: str, source: str, window: str) -> str | None:
    """The pass that the newest listing was made for; None without a readable one."""
    head = read_head(listing_path(home, pipeline, source, window))
    return head.asked_by if head is not None else None
