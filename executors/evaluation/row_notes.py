"""Notes for people on the rows of a range of windows. None of them is an error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from forebay.datatasks.plans.plan import NO_ROWS, SKIPPED
from forebay.executors.model_line.link import Link
from forebay.mixture.left_out import NOT_KNOWN, PAUSED, unsaid
from forebay.system.output.counted import counted

Json = dict[str, Any]


def row_notes(windows: Collection[Json]) -> list[str]:
    """Notes on rows outside their window, rows that are not trained on, and silent windows.

    windows: as in the summary.
    """
    return [
        *_missing_notes(windows),
        *_outside_notes(windows),
        *_not_known_notes(windows),
        *_unsaid_notes(windows),
        *_unjudged_notes(windows),
        *_left_out_notes(windows),
        *_idle_notes(windows),
        *_silent_notes(windows),
    ]


def _sources(windows: Collection[Json]) -> Iterator[tuple[str, str, Json]]:
    """Each source of each window: the window's key, the source's name, and its facts."""
    for window in windows:
        for name, source in window["sources"].items():
            yield window["window"], name, source


def _not_known_notes(windows: Collection[Json]) -> Iterator[str]:
    left_out, served = Counter[str](), Counter[str]()
    for _, name, source in _sources(windows):
        if rows := source["label_not_known_rows"]:
            left_out[name] += rows
            served[name] += source["served_rows"]
    for name, rows in left_out.items():
        yield (
            f"source {name}: {rows:,} of {served[name]:,} rows of such windows were not trained "
            "on: their label was not known when the window ended (known_at); a larger offset of "
            "their stream gives labels more time"
        )


def _unsaid_notes(windows: Collection[Json]) -> Iterator[str]:
    missing, rows = Counter[tuple[str, str]](), Counter[str]()
    for _, name, source in _sources(windows):
        found = unsaid(source["learnt_rows"])
        missing.update({(name, label): count for label, count in found.items()})
        if found:
            rows[name] += source["trained_rows"]
    for (name, label), count in missing.items():
        yield (
            f"source {name}: label {label} was null, or not known when the window ended, in "
            f"{count:,} of {rows[name]:,} rows: these were trained on only for other labels"
        )


def _left_out_notes(windows: Collection[Json]) -> Iterator[str]:
    for window, name, source in _sources(windows):
        held = {
            variant.removesuffix(PAUSED): rows
            for variant, rows in source["learnt_rows"].items()
            if variant.endswith(PAUSED) and rows
        }
        if held:
            yield (
                f"window {window}, source {name}: {', '.join(held)} did not train on "
                f"{counted(max(held.values()), 'row')}: far fewer were positive than their "
                "features suggest, as if labels had stopped coming (train.guard). While every "
                "source of the stream was paused, scores came from the memory tower alone"
            )


def _unjudged_notes(windows: Collection[Json]) -> Iterator[str]:
    events = (window.get("event") or {} for window in windows)
    gone = sum(event.get("unjudged", {}).get("gone", 0) for event in events)
    if gone:
        yield (
            f"no event score for {counted(gone, 'row')}: the checkpoint of the model that would "
            "have scored them is no longer kept (job.checkpoint.windows_kept)"
        )


def _missing_notes(windows: Collection[Json]) -> Iterator[str]:
    for window, name, source in _sources(windows):
        place, gap = f"window {window}, source {name}", source["gap"]
        if gap is not None:
            yield (
                f"{place}: rows of {gap['start']} to {gap['end']} are not trained on "
                f"({gap['reason']}): the source declares that it begins later"
            )
        if source["reason"].startswith(SKIPPED):
            yield f"{place}: trained without it ({source['reason']})"


def _outside_notes(windows: Collection[Json]) -> Iterator[str]:
    for window, name, source in _sources(windows):
        place = f"window {window}, source {name}"
        late, odd = source["late_rows"], source["odd_timestamps"]
        if late:
            yield (
                f"{place}: {counted(late, 'row')} from before the window arrived only after the "
                "previous window had closed"
            )
        if odd:
            side = "after the window"
            if not source["offsets"]:  # of files
                side = "outside of the window, contrary to the metadata of their files"
            first = source["first_odd"]
            yield f"{place}: {counted(odd, 'row')} with a time {side}; the first is {first}"


def _idle_notes(windows: Collection[Json]) -> Iterator[str]:
    rows = Counter[str]()
    for _, name, source in _sources(windows):
        learnt = source["learnt_rows"]
        # A delay head is trained on batch rows, whatever its variant is trained on.
        heads = any("+head" in variant for variant in learnt)
        taken = [count for by, count in learnt.items() if not by.endswith(NOT_KNOWN)]
        if learnt and not heads and not any(taken):
            rows[name] += source["trained_rows"]
    for name, count in rows.items():
        if count:
            yield f"source {name}: {counted(count, 'row')} that no paradigm trains on"


def _silent_notes(windows: Collection[Json]) -> Iterator[str]:
    silent: dict[str, list[str]] = {}
    for window, name, source in _sources(windows):
        if source["reason"] == NO_ROWS:
            silent.setdefault(name, []).append(window)
    for name, keys in silent.items():
        yield f"source {name}: no rows in {counted(len(keys), 'window')}, the first is {keys[0]}"


def not_known_text(link: Link) -> str:
    """Rows that were left out because their label came late; an empty text when there are none."""
    left_out = [
        f"{name} {read.label_not_known:,} of {read.rows:,}"
        for name, read in link.read.items()
        if read.label_not_known
    ]
    said = ""
    if left_out:
        shown = ", ".join(left_out)
        said = f"; rows not trained on because their label was not known in time: {shown}"
    for label, rows_of in unsaid_rows(link).items():
        shown = ", ".join(
            f"{name} {n:,} of {link.trained(name).rows:,}" for name, n in rows_of.items()
        )
        said += f"; rows not trained on for label {label}, null or not known in time: {shown}"
    return said


def unsaid_rows(link: Link) -> dict[str, dict[str, int]]:
    """Rows that were trained on only for other labels, by label and source."""
    found: dict[str, dict[str, int]] = {}
    for source, learnt in link.learnt.items():
        for label, rows in unsaid(learnt).items():
            found.setdefault(label, {})[source] = rows
    return found
