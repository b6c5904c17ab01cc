"""Messages of a record batch in a stretch, and what the offsets between them are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from forebay.datatasks.sources.common.rows.offset_runs import COMPACTED, RECORDS, Run
from forebay.datatasks.sources.kafka.wire.records import MessageBatch


class Messages(NamedTuple):
    """Neighbouring messages, in offset order.

    runs: what each offset is, from where the messages before ended; those of records are the
        offsets of the messages.
    leader_epoch: of the partition's leader that wrote them.
    refusal: why none of the records was read; empty where they were.
    """

    offsets: list[int]
    timestamps: list[int]
    values: list[bytes | None]
    runs: list[Run]
    leader_epoch: int
    refusal: str = ""

    @property
    def end(self) -> int:
        return self.runs[-1].end


def messages_within(batch: MessageBatch, first: int, end: int) -> Messages | None:
    """The part of a batch in [first, end); None where that ends before `first`.

    Batches come in order, so that offsets from `first` on that no batch stands for are gone.
    """
    if batch.offset < first:
        return None
    offsets, timestamps, values = batch.offsets, batch.timestamps, batch.values
    if offsets and not first <= offsets[0] <= offsets[-1] < end:
        low, high = np.searchsorted(offsets, [first, end])
        offsets, timestamps, values = offsets[low:high], timestamps[low:high], values[low:high]
    runs = list(_runs(batch, offsets, first, end))
    return Messages(offsets, timestamps, values, runs, batch.leader_epoch, batch.refusal)


def _runs(batch: MessageBatch, offsets: list[int], first: int, end: int) -> Iterator[Run]:
    last = min(batch.offset + 1, end)
    if batch.kind != RECORDS or batch.refusal:
        start = min(max(batch.first, first), end)
        found = [Run(start, last, batch.kind)] if start < last else []
    else:
        found = _records(offsets)
    for run in found:
        if first < run.first:
            yield Run(first, run.first, COMPACTED)
        yield run
        first = run.end
    if first < last:
        yield Run(first, last, COMPACTED)


def _records(offsets: list[int]) -> list[Run]:
    if not offsets:
        return []
    if offsets[-1] - offsets[0] == len(offsets) - 1:
        return [Run(offsets[0], offsets[-1] + 1, RECORDS)]
    every = np.array(offsets, np.int64)
    breaks = np.flatnonzero(np.diff(every) > 1)
    firsts = every[np.concatenate([[0], breaks + 1])].tolist()
    lasts = every[np.concatenate([breaks, [len(every) - 1]])].tolist()
    return [Run(low, high + 1, RECORDS) for low, high in zip(firsts, lasts, strict=True)]
