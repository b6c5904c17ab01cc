"""Scores joined with the labels that arrive later, and the metrics of windows and whole runs.

Every stream row is scored before the step that uses it and kept by event id. Two labels judge it:
the *fresh* one that the row itself carried, and the *complete* one of the batch row with the same
event id, which comes in the same window or a later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from forebay.executors.judging.event_figures import auc_figures, label_figures
from forebay.executors.window_files.scores import Segments, paradigms_of, score_matrix
from forebay.mixture.advice.completeness import AGES_SECONDS, looked_up
from forebay.mixture.metrics.auc import AucEstimate, estimate_auc, pool
from forebay.mixture.metrics.figures import LabelAge, LabelCounts, PublicationScores
from forebay.mixture.metrics.verdict import partial_words
from forebay.mixture.score_columns import over_seeds

Ids = npt.NDArray[np.int64]
Values = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
_Labels = tuple[Ids, Values]


@dataclass(frozen=True)
class Scored:
    """Scored stream rows of one window, one for each event id (the first one counts).

    fresh: the label as known when the row was published. complete: NaN where no complete label
    has arrived. scores: float32[N, P]. duplicates: rows left out because their event id had been
    scored before. all_here: whether every window that brings complete labels is trained.
    waits: seconds from event to publication, NaN where they are not known. held: bool[N], rows that
    the guard held.
    """

    window: str
    paradigms: tuple[str, ...]
    event_ids: Ids
    fresh: Values
    complete: Values
    scores: Values
    duplicates: int = 0
    all_here: bool = True
    waits: Values | None = None
    held: Mask | None = None

    @property
    def joined(self) -> Mask:
        return ~np.isnan(self.complete)

    @property
    def late_or_not(self) -> Mask:
        """Rows that show how complete labels are: joined, and not held by the guard."""
        return self.joined if self.held is None else self.joined & ~self.held

    @cached_property
    def fresh_auc(self) -> AucEstimate | None:
        """AUCs of the paradigms by the fresh label; None where there are none."""
        return estimate_auc(self.fresh, self.scores) if self.paradigms else None

    @cached_property
    def true_auc(self) -> AucEstimate | None:
        """As `fresh_auc`, of the joined rows by the complete label."""
        joined = self.joined
        if not self.paradigms:
            return None
        return estimate_auc(self.complete[joined], self.scores[joined])


def score_windows(
    windows: Sequence[Segments], paradigms: Sequence[str], horizon: int | None = None
) -> list[Scored]:
    """Join each window's scores with the complete labels of it and of later windows.

    `windows` are consecutive; `paradigms` name the columns of a window without a scored row;
    `horizon` says up to how many windows after its own a complete label may come (the largest
    batch offset in windows, rounded up). None means all that follow.
    """
    labels: dict[int, _Labels] = {}
    boards = []
    for index, window in enumerate(windows):
        end = len(windows) if horizon is None else min(len(windows), index + horizon + 1)
        for later in range(index, end):
            if later not in labels:
                labels[later] = _labels(windows[later])
        arrived = [labels[later] for later in range(index, end)]
        boards.append(_join(window, tuple(paradigms), arrived))
        del labels[index]
    return boards


def window_metrics(scored: Scored) -> dict[str, PublicationScores]:
    """Metrics of one window for each variant and tower."""
    joined = scored.joined
    rows, positives = len(scored.event_ids), int((scored.fresh > 0.5).sum())
    joined_rows = int(joined.sum())
    metrics: dict[str, PublicationScores] = {}
    for column, places in over_seeds(scored.paradigms).items():
        scores = scored.scores[:, list(places)]
        true = scored.true_auc.interval(places).value if scored.true_auc else None
        metrics[column.name] = PublicationScores(
            **auc_figures("auc_fresh", scored.fresh_auc, places),
            **auc_figures("auc_true", scored.true_auc, places),
            **label_figures(scored.fresh, scores),
            **label_figures(scored.complete[joined], scores[joined], "_true"),
            words_true="" if scored.all_here else partial_words(true, joined_rows, rows),
            rows=rows,
            positives=positives,
            joined_rows=joined_rows,
            positives_true=int((scored.complete[joined] > 0.5).sum()),
            duplicates=scored.duplicates,
        )
    return metrics


def label_completeness(boards: Sequence[Scored]) -> LabelCounts:
    """How many of the positives were known at publication, over rows with both labels.

    A positive that was taken back is none. Rows that the guard held are left out: a fault is not a
    delay and needs no correction. `share` is None while no complete positive is known.
    """
    known = [(one.fresh > 0.5)[one.late_or_not & (one.complete > 0.5)] for one in boards]
    fresh, complete = sum(int(one.sum()) for one in known), sum(map(len, known))
    share = fresh / complete if complete else None
    return LabelCounts(fresh_positives=fresh, complete_positives=complete, share=share)


def label_ages(boards: Sequence[Scored]) -> list[LabelAge]:
    """The same counts by how long rows had waited when published; ages without any are left out."""
    counts = np.zeros((len(AGES_SECONDS) + 1, 2), np.int64)
    for board in boards:
        if board.waits is None:
            continue
        here = (board.complete > 0.5) & ~np.isnan(board.waits) & board.late_or_not
        ages = np.searchsorted(AGES_SECONDS, board.waits[here])
        counts[:, 0] += np.bincount(ages[board.fresh[here] > 0.5], minlength=len(counts))
        counts[:, 1] += np.bincount(ages, minlength=len(counts))
    return [
        LabelAge(until_seconds=until, fresh_positives=fresh, complete_positives=complete)
        for until, (fresh, complete) in zip((*AGES_SECONDS, None), counts.tolist(), strict=True)
        if complete
    ]


def pooled_aucs(
    boards: Sequence[Scored],
) -> tuple[Sequence[str], AucEstimate | None, AucEstimate | None]:
    """Columns, and their AUCs over windows: by fresh labels, and by complete ones.

    Windows whose complete labels are still to come are not part of the latter.
    """
    with_rows = [board for board in boards if len(board.event_ids)]  # others only name variants
    columns = next((board.paradigms for board in with_rows or boards if board.paradigms), ())
    scored = [board for board in boards if board.paradigms == columns]
    fresh = pool(board.fresh_auc for board in scored)
    return columns, fresh, pool(board.true_auc for board in scored if board.all_here)


def _labels(window: Segments) -> _Labels:
    table = window.labels()
    if table is None:
        return np.array([], dtype=np.int64), np.array([], dtype=np.float32)
    return table.column("event_id").to_numpy(), table.column("complete").to_numpy()


def _join(window: Segments, paradigms: tuple[str, ...], labels: Sequence[_Labels]) -> Scored:
    table = window.scores()
    if table is None:
        none, nobody = np.array([], dtype=np.float32), np.array([], dtype=np.int64)
        scores = np.empty((0, len(paradigms)), dtype=np.float32)
        return Scored(window.window, paradigms, nobody, none, none, scores)
    all_ids = table.column("event_id").to_numpy()
    _, first = np.unique(all_ids, return_index=True)
    first.sort()  # the order of arrival again
    event_ids = all_ids[first]
    return Scored(
        window=window.window,
        paradigms=paradigms_of(table),
        event_ids=event_ids,
        fresh=table.column("fresh").to_numpy()[first],
        complete=looked_up(event_ids, *map(np.concatenate, zip(*labels, strict=True))),
        scores=score_matrix(table)[first],
        waits=table.column("wait").to_numpy()[first],
        held=np.asarray(table.column("held"), np.bool_)[first],
        duplicates=len(all_ids) - len(first),
    )
