"""The offset that a stream actually had in a window: where its rows begin and where they end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from forebay.datatasks.plans import WindowPlan
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.steps import read_steps
from forebay.home.store import Store
from forebay.system.instants import to_us

Json = dict[str, Any]
_SECOND_US = 1_000_000


def achieved_offsets(store: Store, plan: WindowPlan, link: Link) -> Json:
    """The offset of each stream as declared and as its rows had it, by stream.

    Two offsets are measured: of the first row from the start of the window, and of the last row
    from its end. If a stream has rows throughout, both are the declared offset. Times are those
    that cut windows: of the event, or of the publication in a topic or log.

    Returns:
        `offset_seconds`, and `measured_seconds`: the smaller and the larger of the two; None where
        no row has a time.

    Raises:
        DataError: when the file with the steps of the window is damaged.
    """
    times = _times(store, link)
    found: Json = {}
    for name, source in plan.sources.items():
        known = found.setdefault(
            source.stream, {"offset_seconds": source.offset_seconds, "measured_seconds": None}
        )
        if name in times:
            known["times"] = _both(times[name], known.get("times"))
    for stream in found.values():
        if "times" in stream:
            first, last = stream.pop("times")
            ends = to_us(plan.start) - first, to_us(plan.end) - last
            stream["measured_seconds"] = [each / _SECOND_US for each in sorted(ends)]
    return found


def _times(store: Store, link: Link) -> Mapping[str, tuple[int, int]]:
    """First and last time of the rows of each source; none once the steps are no longer kept."""
    stored = link.files.get("steps")
    points = [] if stored is None else read_steps(store.path(stored))
    return points[-1].times if points else {}


def _both(one: tuple[int, int], other: tuple[int, int] | None) -> tuple[int, int]:
    return one if other is None else (min(one[0], other[0]), max(one[1], other[1]))


def offset_words(windows: Iterable[Json]) -> list[str]:
    """`yesterday 24h (measured 23.4h to 24.6h)` for each stream of some windows.

    Empty if no stream has an offset. windows: what `achieved_offsets` found for each; the measured
    figures are the smallest and the largest of all.
    """
    declared: dict[str, int] = {}
    measured: dict[str, list[float]] = {}
    for window in windows:
        for stream, found in window.items():
            declared[stream] = found["offset_seconds"]
            measured.setdefault(stream, []).extend(found["measured_seconds"] or ())
    if not any(declared.values()):
        return []
    return [
        f"{stream} {_hours(seconds)} ({_range(measured[stream])})"
        for stream, seconds in declared.items()
    ]


def _range(seconds: list[float]) -> str:
    if not seconds:
        return "not measured"
    low, high = _hours(min(seconds)), _hours(max(seconds))
    return f"measured {low}" if low == high else f"measured {low} to {high}"


def _hours(seconds: float) -> str:
    text = f"{seconds / 3600:.1f}".removesuffix(".0")
    return "0h" if text == "-0" else f"{text}h"
