"""Evaluation of one trained window: its metrics, and whether its row counts agree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import islice
from typing import Any

from forebay.errors import RowsLostError, UsageError
from forebay.executors.evaluation.event_words import (
    all_metrics,
    evaluation_words,
    event_answers,
    event_words,
)
from forebay.executors.evaluation.row_notes import unsaid_rows
from forebay.executors.evaluation.summary import (
    achieved_offsets,
    opinion,
    rows_verdict,
    window_facts,
)
from forebay.executors.stages.results import EvaluateResult
from forebay.executors.stages.target import StageTarget
from forebay.home.store.open import store_of


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
    documents = [
        window_facts(plans[one.window], one)
        | {"stream_offsets": achieved_offsets(store_of(chain.home), plans[one.window], one)}
        | opinion(one.window, stale, changed.get(one.window), evaluation)
        for one, stale in standing
    ]
    agree, rows_line = rows_verdict(documents)
    document = {**documents[-1], "rows_agree": agree, "rows_line": rows_line}
    chain.judge(link, document)
    completed = complete_judgements(target.pipeline, chain, link, link)
    if not agree:
        raise RowsLostError(rows_line)
    return EvaluateResult(
        window=key,
        generation=link.generation,
        rows={name: link.trained(name).rows for name in link.seen},
        label_not_known={
            name: read.label_not_known for name, read in link.read.items() if read.label_not_known
        },
        labels_not_known=unsaid_rows(link),
        rows_line=rows_line,
        metrics=_by_name(all_metrics(document)),
        event=_by_name(event_answers(document)),
        completed={key: _by_name(event_answers(one)) for key, one in completed.items()},
        words=[
            *(
                f"window {before}, whose labels are complete now: event AUC of {words}"
                for before, one in completed.items()
                for words in islice(event_words(one), 1)
            ),
            *(f"window {key}: {words}" for words in evaluation_words(document)),
        ],
        warnings=[
            *line_warnings(target.pipeline, chain),
            *repeat_warnings([document]),
            *(
                f"window {one['window']}: {words}"
                for one in (*completed.values(), document)
                if (one.get("event") or {}).get("complete")
                for words in doubtful_words(event_answers(one))
            ),
        ],
    )


def _by_name(found: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Single numbers only; intervals, and what could not be computed, are stored, not returned."""
    return {
        key: {
            name: float(value)
            for name, value in figures.items()
            if isinstance(value, (int, float)) and math.isfinite(value)
        }
        for key, figures in found.items()
    }
