"""Rows whose time is not that of the window that trained them, in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def outside_notes(windows: Iterable[dict[str, Any]]) -> list[str]:
    """A note for each source of a window that had some. windows: as in the summary."""
    notes: list[str] = []
    for window in windows:
        for name, source in window["sources"].items():
            place = f"window {window['window']}, source {name}"
            late, odd = source["late_rows"], source["odd_timestamps"]
            if late:
                notes.append(
                    f"{place}: {late:,} rows are older than the window; they lie behind its border"
                )
            if odd:
                notes.append(
                    f"{place}: {odd:,} rows have a time behind the window; the first is "
                    f"{source['first_odd']}"
                )
    return notes
