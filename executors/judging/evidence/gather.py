"""Figures of windows from their judged rows; rows of known windows are not read again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from forebay.executors.judging.event_rows import places_of, sampled_rows
from forebay.executors.judging.evidence.gate_evidence import (
    FigureNumbers,
    GateEvidence,
    KnownWindow,
)
from forebay.executors.model_line.link import Parent
from forebay.executors.window_files.scores import (
    Segments,
    paradigms_of,
    score_matrix,
    without_slices,
)
from forebay.mixture.metrics.auc import estimate_auc
from forebay.mixture.metrics.losses import estimate_losses


class TrainedWindow(NamedTuple):
    """A link whose scores can be read. start, end: see `KnownWindow`."""

    link: Parent
    start: int
    end: int
    open: Callable[[], Segments]


def gather(
    trained: Sequence[TrainedWindow],
    horizon: int,
    known: Sequence[KnownWindow] = (),
    label: str = "",
) -> GateEvidence:
    """Evidence of windows; scores are read for those that are not known.

    Those of a known one are read again only if a new one brings more rows of the same window.

    trained: windows in order, without a gap.
    horizon: with how many windows after its own complete labels may come.
    known: the first of them, as earlier evidence has them.
    label: whose rows and scores they are; see `Segments`.

    Raises:
        DataError: when scores are missing or damaged.
    """
    gathering = _Gathering(trained, horizon, known)
    for number in range(len(known), len(trained)):
        gathering.take_in(number)
    return GateEvidence(horizon=horizon, label=label, windows=gathering.windows())


class _Gathering:
    """Windows by their number in `trained`, the known ones first."""

    def __init__(
        self, trained: Sequence[TrainedWindow], horizon: int, known: Sequence[KnownWindow]
    ) -> None:
        self._trained = trained
        self._horizon = horizon
        self._starts = np.array([one.start for one in trained], np.int64)
        self._ends = np.array([one.end for one in trained], np.int64)
        self._windows = list(known)
        self._tables: dict[int, pa.Table | None] = {}
        self._changed: set[int] = set()

    def take_in(self, number: int) -> None:
        """Add the next window: the rows it brought, and earlier ones that belong to its events."""
        one, table = self._trained[number], self._table(number)
        found = KnownWindow(link=one.link, start=one.start, end=one.end)
        if table is not None and table.num_rows:
            times = table.column("event_time").to_numpy()
            places = places_of(times, self._starts, self._ends)
            brought = np.unique(places[(places >= 0) & (places <= number)]).tolist()
            names = [self._trained[place].link.window for place in brought]
            found = found.model_copy(update={"brought": names, "latest": int(times.max())})
            self._changed |= {place for place in brought if number - place <= self._horizon}
        if any(each.latest is not None and each.latest >= one.start for each in self._windows):
            self._changed.add(number)
        self._windows.append(found)
        self._judge_until(number - self._horizon)

    def windows(self) -> list[KnownWindow]:
        self._judge_until(len(self._windows) - 1)
        return self._windows

    def _judge_until(self, last: int) -> None:
        """Compute what changed up to a window; tables up to it are not needed after that."""
        for place in sorted(place for place in self._changed if place <= last):
            self._windows[place] = self._judged(place)
            self._changed.remove(place)
        for number in [number for number in self._tables if number <= last]:
            del self._tables[number]

    def _judged(self, place: int) -> KnownWindow:
        """Figures of one window's events: the first row of each event id counts."""
        window = self._windows[place]
        found = [self._rows(number, place) for number in self._who_brought(place)]
        tables = [rows for rows in found if rows is not None]
        if not tables:
            return window
        columns = paradigms_of(tables[0])
        table = pa.concat_tables(tables)
        _, first = np.unique(table.column("event_id").to_numpy(), return_index=True)
        table = table.take(np.sort(first))
        scores = score_matrix(table)
        judged = ~np.isnan(scores).any(axis=1)
        labels = table.column("complete").to_numpy()[judged]
        auc = estimate_auc(labels, scores[judged]) if columns else None
        losses = estimate_losses(labels, scores[judged]) if columns else None
        numbers = None
        if auc is not None and losses is not None:
            numbers = FigureNumbers.of(auc, losses, scores[judged].sum(axis=0, dtype=np.float64))
        return window.model_copy(update={"columns": list(columns), "numbers": numbers})

    def _who_brought(self, place: int) -> list[int]:
        """Numbers of the windows whose rows may belong to one window's events."""
        window = self._windows[place]
        last = min(place + self._horizon, len(self._windows) - 1)
        before = [
            number
            for number, one in enumerate(self._windows[:place])
            if one.latest is not None and one.latest >= window.start
        ]
        return before + [
            number
            for number in range(place, last + 1)
            if window.link.window in self._windows[number].brought
        ]

    def _rows(self, number: int, place: int) -> pa.Table | None:
        table = self._table(number)
        if table is None:
            return None
        times = table.column("event_time").to_numpy()
        here = places_of(times, self._starts, self._ends) == place
        return table.take(np.flatnonzero(here)) if here.any() else None

    def _table(self, number: int) -> pa.Table | None:
        """The sampled judged rows that a window brought."""
        if number not in self._tables:
            table = self._trained[number].open().judged()
            if table is not None:
                table = without_slices(table).take(sampled_rows(table))
            self._tables[number] = table
        return self._tables[number]
