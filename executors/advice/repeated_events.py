"""Rows of a window that share their event id: only one of them is judged, all are trained on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from forebay.executors.model_line.judgement import Judgement, Repeats
from forebay.executors.window_files.scores import Segments

WARNED = 0.01  # a larger share of rows is not what redelivery leaves
_MOST = 0.9


def repeats_of(ids: npt.NDArray[np.int64], labels: npt.NDArray[np.float32]) -> Repeats:
    """How many rows share an id with another one, or with exactly one; events of two labels."""
    order = np.lexsort((labels, ids))
    ids, labels = ids[order], labels[order]
    first = np.flatnonzero(np.diff(ids, prepend=ids[:1] - 1))
    counts = np.diff(first, append=len(ids))
    differ = labels[first] < labels[first + counts - 1]  # a null is last, and never differs
    return {
        "rows": len(ids),
        "repeated": int(counts[counts > 1].sum()),
        "twice": int(counts[counts == 2].sum()),
        "contradicting": int(differ.sum()),
    }


def repeated_events(segments: Segments) -> dict[str, Repeats]:
    """Of one window, by feed. Without a stream, batch rows are scored too and count once."""
    labels, scores = segments.labels(), segments.scores()
    found = {}
    if labels is not None:
        found["batch"] = _repeats(labels, "complete")
        if scores is not None:
            scores = scores.filter(
                pa.array(~np.isin(scores["source"], np.unique(labels["source"])))
            )
    if scores is not None and scores.num_rows:
        found["stream"] = _repeats(scores, "fresh")
    return found


def _repeats(table: pa.Table, label: str) -> Repeats:
    return repeats_of(table["event_id"].to_numpy(), table[label].to_numpy())


def repeat_warnings(windows: Collection[Judgement]) -> list[str]:
    """For each feed with many such rows, or contradicting labels."""
    totals: dict[str, Counter[str]] = {}
    for window in windows:
        for feed, counts in (window.repeated_events or {}).items():
            totals.setdefault(feed, Counter()).update(counts)
    said = (repeat_words(f"{feed} rows", counts) for feed, counts in totals.items())
    return [words for words in said if words]


def repeat_words(rows: str, counts: Repeats) -> str:
    """What is wrong, and what to do; empty where little is. rows: whose counts they are."""
    contradicting = counts["contradicting"]
    if counts["repeated"] <= WARNED * counts["rows"] and not contradicting:
        return ""
    words = (
        f"{counts['repeated']:,} of {counts['rows']:,} {rows} share their event id with another "
        "one: all train, one of each is judged"
    )
    if contradicting:
        words += f", and {contradicting:,} events have both labels"
    if counts["twice"] >= _MOST * counts["rows"]:
        words += "; almost every one is there twice, as if all had been delivered twice"
    return f"{words}. Name columns in dataset.event_id that tell events apart, or remove the copies"
