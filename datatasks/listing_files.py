"""Where listings lie, and for which pass one was made. Light: it reads one line and no tasks."""

from __future__ import annotations

import json
from pathlib import Path

from forebay.home.paths import Home

FOLDER = ".listings"
LISTING_SUFFIX = ".listing"
_HEAD_BYTES_MAX = 1 << 20


def listing_path(home: Home, pipeline: str, source: str, window: str) -> Path:
    """The file with the newest answer of a source for a window."""
    return home.ledger(pipeline) / FOLDER / source / (window + LISTING_SUFFIX)


def listed_for(home: Home, pipeline: str, source: str, window: str) -> str | None:
    """The pass that the newest listing was made for; None without a readable one.

    A hint: whether the listing is whole is for whoever reads its tasks to say.
    """
    try:
        with listing_path(home, pipeline, source, window).open("rb") as stream:
            head = json.loads(stream.readline(_HEAD_BYTES_MAX))
    except (OSError, ValueError):
        return None
    asked_by = head.get("asked_by") if isinstance(head, dict) else None
    return asked_by if isinstance(asked_by, str) else None
