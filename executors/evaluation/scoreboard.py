"""Scores joined with the labels that arrive later, and the metrics of windows and whole runs.

Every stream row is scored before the step that uses it and kept by event id. Two labels judge it:
the *fresh* one that the row itself carried, and the *complete* one of the batch row with the same
event id, which comes in the same window or a later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from forebay.executors.window_files.scores import Segments, paradigms_of, score_matrix
from forebay.mixture.metrics.auc import AucEstimate, estimate_auc, pool
from forebay.mixture.metrics.probabilities import calibration, log_loss, normalised_entropy
from forebay.mixture.metrics.verdict import completeness_words, difference_words

Json = dict[str, Any]
Ids = npt.NDArray[np.int64]
Values = npt.NDArray[np.float32]
_Labels = tuple[Ids, Values]


@dataclass(frozen=True)
class Scored:
    """Scored stream rows of one window, one for each event id (the first one counts).

    fresh: the label as known when the row was published. complete: NaN where no complete label
    has arrived. scores: float32[N, P]. duplicates: rows left out because their event id had been
    scored before.
    """

    window: str
    paradigms: tuple[str, ...]
    event_ids: Ids
    fresh: Values
    complete: Values
    scores: Values
    duplicates: int = 0

    @property
    def joined(self) -> npt.NDArray[np.bool_]:
        """Rows whose complete label is known."""
        return ~np.isnan(self.complete)

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
    `horizon` says how many windows after its own one a complete label may lie (the largest batch
    offset in windows, rounded up). None means all that follow.
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


def window_metrics(scored: Scored) -> dict[str, Json]:
    """Metrics of one window for each paradigm, in the form of the summary.

    `auc_fresh`, `log_loss`, `normalised_entropy` and `calibration` judge all `rows` by the fresh
    label; `auc_true` and the figures that end in `_true` judge `joined_rows` by the complete one.
    """
    joined = scored.joined
    metrics: dict[str, Json] = {}
    for index, name in enumerate(scored.paradigms):
        row = _label_metrics(scored.fresh, scored.scores[:, index], "")
        row |= _label_metrics(scored.complete[joined], scored.scores[joined, index], "_true")
        metrics[name] = {
            **_auc_figures("auc_fresh", scored.fresh_auc, index),
            **_auc_figures("auc_true", scored.true_auc, index),
            "rows": len(scored.event_ids),
            "positives": int((scored.fresh > 0.5).sum()),
            "joined_rows": int(joined.sum()),
            "positives_true": int((scored.complete[joined] > 0.5).sum()),
            "duplicates": scored.duplicates,
            **row,
        }
    return metrics


def label_completeness(boards: Sequence[Scored]) -> Json:
    """How many of the positives were known at publication, over rows with both labels.

    `share` is None while no complete positive is known.
    """
    fresh = sum(int((board.fresh[board.joined] > 0.5).sum()) for board in boards)
    complete = sum(int((board.complete[board.joined] > 0.5).sum()) for board in boards)
    return {
        "fresh_positives": fresh,
        "complete_positives": complete,
        "share": fresh / complete if complete else None,
    }


def summarise_scores(boards: Sequence[Scored]) -> Json:
    """The block `pooled` of a summary: pooled AUCs, paired differences, verdicts in words.

    Differences are taken on complete labels where any are known, on fresh ones otherwise; `label`
    says which.
    """
    paradigms = next((board.paradigms for board in boards if board.paradigms), ())
    scored = [board for board in boards if board.paradigms == paradigms]
    fresh = pool(board.fresh_auc for board in scored)
    true = pool(board.true_auc for board in scored)
    completeness = label_completeness(scored)
    warning = completeness_words(
        paradigms, completeness["fresh_positives"], completeness["complete_positives"]
    )
    return {
        "paradigms": {
            name: {
                "auc_fresh": fresh.interval(index).as_json() if fresh else None,
                "auc_true": true.interval(index).as_json() if true else None,
            }
            for index, name in enumerate(paradigms)
        },
        "label": "complete" if true else "fresh",
        "differences": _differences(paradigms, true or fresh),
        "label_completeness": completeness,
        "warnings": [warning] if warning else [],
    }


def _differences(paradigms: Sequence[str], auc: AucEstimate | None) -> list[Json]:
    if auc is None:
        return []
    rows = []
    for (first, a), (second, b) in combinations(enumerate(paradigms), 2):
        difference = auc.difference(first, second)
        row: Json = {"a": a, "b": b, **difference.as_json()}
        row["differ"] = difference.excludes_zero
        row["words"] = difference_words(a, b, difference)
        rows.append(row)
    return rows


def _auc_figures(name: str, auc: AucEstimate | None, index: int) -> Json:
    """The figure under `name`, its 95% interval [low, high] under `<name>_interval`."""
    if auc is None:
        return {name: None, f"{name}_interval": None}
    estimate = auc.interval(index)
    return {name: estimate.value, f"{name}_interval": [estimate.low, estimate.high]}


def _label_metrics(labels: Values, scores: Values, suffix: str) -> Json:
    return {
        f"log_loss{suffix}": log_loss(labels, scores),
        f"normalised_entropy{suffix}": normalised_entropy(labels, scores),
        f"calibration{suffix}": calibration(labels, scores),
    }


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
        complete=_look_up(event_ids, labels),
        scores=score_matrix(table)[first],
        duplicates=len(all_ids) - len(first),
    )


def _look_up(event_ids: Ids, labels: Sequence[_Labels]) -> Values:
    ids, first = np.unique(np.concatenate([one[0] for one in labels]), return_index=True)
    found = np.full(len(event_ids), np.nan, dtype=np.float32)
    if len(ids) == 0:
        return found
    values = np.concatenate([one[1] for one in labels])[first]
    place = np.minimum(np.searchsorted(ids, event_ids), len(ids) - 1)
    return np.where(ids[place] == event_ids, values[place], found)
