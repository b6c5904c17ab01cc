"""How complete fresh labels are: compares rows of a stream with their twins that came later.

A row of a stream carries the label as it was known when the row was published; the batch row of the
same event, its *twin*, carries the complete one. If the batch data says when a label became known,
its delay is known without any comparison.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from forebay.mixture.metrics.share import Share

_MINUTE, _HOUR = 60, 3600
AGES_SECONDS = (15 * _MINUTE, *(hours * _HOUR for hours in (1, 3, 6, 12, 24, 48, 168)))

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class FreshRows:
    """N sampled rows of a stream, in the order of their publication.

    event_ids: int64[N]. labels: float32[N], 0 or 1 as the row says it, NaN where null.
    waits: float32[N], seconds from the event to the publication, NaN where unknown.
    groups: int32[N], which rows were sampled together, counted from 0.
    """

    event_ids: Ids
    labels: Floats
    waits: Floats
    groups: npt.NDArray[np.int32]


@dataclass(frozen=True)
class CompleteRows:
    """M batch rows, among them the twins of sampled ones.

    event_ids: int64[M]. labels: float32[M], complete; NaN where null.
    delays: float32[M], seconds from the event until its label was known; NaN where unknown.
    """

    event_ids: Ids
    labels: Floats
    delays: Floats


@dataclass(frozen=True)
class AgeShare:
    """How many complete positives were known at an age: of labels, or of the rows that carry them.

    after_seconds, until_seconds: by `known_at` the positives known until the age `until_seconds`
    (and `after_seconds` is 0); by `publication` those of the rows published between the two ages.
    """

    after_seconds: int
    until_seconds: int
    share: Share


@dataclass(frozen=True)
class Completeness:
    """What a sample says about a stream's labels.

    events: sampled events with a label. twins: those whose complete label was found.
    at_publication: complete positives that the stream's first copy of the event knew; None if no
    twin is positive, so that nothing is known. taken_back: twins that are positive in the stream
    but not in the batch data. wait_seconds: the median; None if the stream does not say when its
    events happened. by_age: see `AgeShare`.
    """

    events: int
    twins: int
    at_publication: Share | None
    taken_back: int
    wait_seconds: float | None
    by_age: tuple[AgeShare, ...]


def measure_completeness(fresh: FreshRows, complete: CompleteRows) -> Completeness:
    """Compare fresh labels with complete ones, event by event; of several twins, the first."""
    first = _first_copies(fresh)
    label = _labels_of(fresh.event_ids, complete)
    positive, known = label > 0.5, fresh.labels > 0.5
    waits = fresh.waits[first & ~np.isnan(fresh.waits)]
    return Completeness(
        events=int(first.sum()),
        twins=int((first & ~np.isnan(label)).sum()),
        at_publication=_grouped(first & positive, known, fresh.groups),
        taken_back=int((first & known & (label <= 0.5)).sum()),
        wait_seconds=float(np.median(waits)) if len(waits) else None,
        by_age=_by_delay(complete)
        or _by_publication(fresh, positive & ~np.isnan(fresh.labels), known),
    )


def _first_copies(fresh: FreshRows) -> Mask:
    rows = np.flatnonzero(~np.isnan(fresh.labels))
    _, places = np.unique(fresh.event_ids[rows], return_index=True)
    found = np.zeros(len(fresh.event_ids), np.bool_)
    found[rows[places]] = True
    return found


def _labels_of(event_ids: Ids, complete: CompleteRows) -> Floats:
    """The complete label of each event; NaN where there is none."""
    rows = ~np.isnan(complete.labels)
    return looked_up(event_ids, complete.event_ids[rows], complete.labels[rows])


def looked_up(event_ids: Ids, ids: Ids, labels: Floats) -> Floats:
    """The label of each event, the first of several; NaN where there is none."""
    known, first = np.unique(ids, return_index=True)
    if not len(known):
        return np.full(len(event_ids), np.nan, np.float32)
    at = np.minimum(np.searchsorted(known, event_ids), len(known) - 1)
    return np.where(known[at] == event_ids, labels[first][at], np.float32(np.nan))


def _grouped(rows: Mask, known: Mask, groups: npt.NDArray[np.int32]) -> Share | None:
    count = int(groups.max()) + 1 if len(groups) else 0
    wholes = np.bincount(groups[rows], minlength=count)
    parts = np.bincount(groups[rows & known], minlength=count)
    return Share.of(parts.tolist(), wholes.tolist())


def _by_delay(complete: CompleteRows) -> tuple[AgeShare, ...]:
    """By when positives were known; each event counts once, those without a delay not at all."""
    _, places = np.unique(complete.event_ids, return_index=True)
    rows = places[(complete.labels[places] > 0.5) & ~np.isnan(complete.delays[places])]
    delays = complete.delays[rows]
    shares = (Share.of([int((delays <= age).sum())], [len(delays)]) for age in AGES_SECONDS)
    return tuple(
        AgeShare(0, age, share)
        for age, share in zip(AGES_SECONDS, shares, strict=True)
        if share is not None
    )


def _by_publication(fresh: FreshRows, positive: Mask, known: Mask) -> tuple[AgeShare, ...]:
    """By the age of events when a row of them was published; every copy of an event counts."""
    found = []
    for after, until in zip((0, *AGES_SECONDS), AGES_SECONDS, strict=False):
        aged = positive & (fresh.waits <= until) & (fresh.waits > after)
        if after == 0:
            aged |= positive & (fresh.waits <= 0)
        share = _grouped(aged, known, fresh.groups)
        if share is not None:
            found.append(AgeShare(after, until, share))
    return tuple(found)
