"""Figures over many windows, and the verdicts that follow: which paradigm is better, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from forebay.executors.evaluation.scoreboard import (
    Scored,
    label_ages,
    label_completeness,
    pooled_aucs,
)
from forebay.executors.judging.event_figures import EventFigures, pooled_block
from forebay.executors.judging.evidence.window_figures import counted_windows
from forebay.mixture.metrics.auc import AucEstimate, pool
from forebay.mixture.metrics.verdict import completeness_words, difference_words
from forebay.mixture.score_columns import over_seeds

Json = dict[str, Any]


def summarise_scores(
    boards: Sequence[Scored],
    events: Sequence[EventFigures] = (),
    corrected: Mapping[str, str] | None = None,
) -> Json:
    """The block `pooled` of a summary: pooled figures, paired differences, verdicts in words.

    Differences are between event scores if there are any; otherwise between scores at publication,
    by complete labels if any are known, or by fresh ones: `scored_at` and `label` say which. While
    complete labels are still to come, fresh ones decide nothing: the variant that fits these best
    would look better than one that corrects them. corrected: names of the variants for the label,
    if it has its own correction.
    """
    columns, fresh, true = pooled_aucs(boards)
    completeness = label_completeness([board for board in boards if board.all_here] or boards)
    answers = over_seeds(columns)
    names = [column.variant for column in answers if not column.tower]
    variants = [(corrected or {}).get(name, name) for name in names]
    warning = completeness_words(
        variants, completeness["fresh_positives"], completeness["complete_positives"]
    )
    counted = counted_windows(events)
    event = pool(one.auc for one in counted)
    waits = any(not board.all_here and not board.joined.all() for board in boards)
    return {
        "paradigms": {
            column.name: {
                "auc_fresh": fresh.interval(places).as_json() if fresh else None,
                "auc_true": true.interval(places).as_json() if true else None,
            }
            for column, places in answers.items()
        },
        "event": pooled_block(events),
        "scored_at": "event" if event else "publication",
        "label": "complete" if event or true else "fresh",
        "differences": _differences(counted[0].columns, event)
        if event
        else _differences(columns, true or (None if waits else fresh)),
        "label_completeness": completeness,
        "label_ages": label_ages(boards),
        "warnings": [warning] if warning else [],
    }


def _differences(columns: Sequence[str], auc: AucEstimate | None) -> list[Json]:
    """Between every two variants, seed by seed; towers that do not answer are not compared."""
    if auc is None:
        return []
    answers = [(one.name, places) for one, places in over_seeds(columns).items() if not one.tower]
    rows = []
    for (a, first), (b, second) in combinations(answers, 2):
        difference = auc.difference(first, second)
        row: Json = {"a": a, "b": b, **difference.as_json()}
        row["differ"] = difference.excludes_zero
        row["words"] = difference_words(a, b, difference)
        rows.append(row)
    return rows
