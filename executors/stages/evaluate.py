"""Evaluation of one trained window: its metrics, and whether its row counts agree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice

from forebay.errors import RowsLostError, UsageError
from forebay.executors.evaluation.summary import judged, opinion, window_facts
from forebay.executors.evaluation.words import (
    all_metrics,
    evaluation_words,
    event_answers,
    event_words,
    unsaid_rows,
)
from forebay.executors.stages.results import EvaluateResult
from forebay.executors.stages.target import StageTarget
from forebay.mixture.metrics.figures import EventScores, PublicationScores


def evaluate_window(target: StageTarget) -> EvaluateResult:
    """Judge the newest generation of a window and store the judgement with its link.

    Labels of later windows that are trained already count. For the first window of a line, the row
    counts of its warm start are checked too. Starts no TensorFlow: the scores are those of
    training.

    Raises:
        UsageError: when the window is not trained.
        RowsLostError: when rows planned, served and trained do not agree; that is stored too.
        DataError: when its plan or its scores are damaged.
    """
    from forebay.executors.advice.line import line_warnings
    from forebay.executors.advice.repeated_events import repeat_warnings
    from forebay.executors.evaluation.windows import complete_judgements, evaluate
    from forebay.mixture.metrics.verdict import doubtful_words

    chain, ledger, key = target.chain, target.ledger, target.key
    standing = chain.standing(key)
    if not standing:
        raise UsageError(
            f"window {key} is not trained on line {target.line!r}: there is nothing to judge"
        )
    link = standing[-1][0]
    evaluation = evaluate(target.pipeline, chain, [link])
    plans, changed = ledger.trained_from({one.window: one.generation for one, _ in standing})
    *before, own = [
        opinion(
            window_facts(chain, plans[one.window], one), stale, changed.get(one.window), evaluation
        )
        for one, stale in standing
    ]
    judgement = judged(own, *before)
    chain.judge(link, judgement)
    completed = complete_judgements(target.pipeline, chain, link, link)
    if not judgement.rows_agree:
        raise RowsLostError(judgement.rows_line)
    return EvaluateResult(
        window=key,
        generation=link.generation,
        rows={name: link.trained(name).rows for name in link.seen},
        label_not_known={
            name: read.label_not_known for name, read in link.read.items() if read.label_not_known
        },
        labels_not_known=unsaid_rows(link),
        rows_line=judgement.rows_line,
        metrics=_by_name(all_metrics(judgement)),
        event=_by_name(event_answers(judgement)),
        completed={key: _by_name(event_answers(one)) for key, one in completed.items()},
        words=[
            *(
                f"window {before}, whose labels are complete now: event AUC of {words}"
                for before, one in completed.items()
                for words in islice(event_words(one), 1)
            ),
            *(f"window {key}: {words}" for words in evaluation_words(judgement)),
        ],
        warnings=[
            *line_warnings(target.pipeline, chain),
            *repeat_warnings([judgement]),
            *(
                f"window {one.window}: {words}"
                for one in (*completed.values(), judgement)
                if not one.is_partial
                for words in doubtful_words(event_answers(one))
            ),
        ],
    )


def _by_name(found: Mapping[str, EventScores | PublicationScores]) -> dict[str, dict[str, float]]:
    """Single numbers only; intervals, and what could not be computed, are stored, not returned."""
    return {
        key: {
            name: float(value)
            for name, value in figures
            if isinstance(value, (int, float)) and math.isfinite(value)
        }
        for key, figures in found.items()
    }
