"""What happened to the windows of a pipeline: for people, nothing is decided by it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, insert, select

from forebay.home.database.tables import events
from forebay.system.instants import from_us, now_us
from forebay.system.output.redaction import redacted

_NOTE = insert(events)


def note(
    connection: Connection, pipeline: str, window: str, event: str, facts: Mapping[str, Any]
) -> None:
    text = redacted(json.dumps(facts, default=str))
    values = {"pipeline": pipeline, "window": window, "event": event, "facts": text}
    connection.execute(_NOTE, {"happened_at": now_us(), **values})


def entries(connection: Connection, pipeline: str, window: str | None) -> list[dict[str, Any]]:
    """What happened to one window or to all, the oldest first."""
    rows = select(events).where(events.c.pipeline == pipeline).order_by(events.c.id)
    if window is not None:
        rows = rows.where(events.c.window == window)
    return [
        {
            "at": from_us(row.happened_at).isoformat(timespec="milliseconds"),
            "window": row.window,
            "event": row.event,
            **json.loads(row.facts),
        }
        for row in connection.execute(rows)
    ]
