"""Evaluation of one trained window: its metrics, and whether all counts of its rows agree."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from forebay.config.windows import is_warm_start
from forebay.errors import RowsLostError, UsageError
from forebay.executors.evaluation.summary import opinion, rows_verdict, window_facts
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.executors.stages.results import EvaluateResult
from forebay.executors.stages.target import StageTarget


def evaluate_window(target: StageTarget) -> EvaluateResult:
    """Judge the newest generation of a window and store the judgement with its link.

    Labels of later windows that are trained already count. The first window of a line answers
    for the rows of its warm start too. Starts no TensorFlow: the scores are those of training.

    Raises:
        UsageError: when the window is not trained.
        RowsLostError: when rows planned, served and trained do not agree; that is stored too.
        DataError: when its plan or its scores are damaged.
    """
    from forebay.executors.evaluation.windows import evaluate

    chain, ledger, key = target.chain, target.ledger, target.key
    link = chain.newest(key)
    if link is None:
        raise UsageError(
            f"window {key} is not trained on line {target.line!r}: there is nothing to judge"
        )
    evaluation = evaluate(target.pipeline, chain, [link])
    links = [*_warm_start(chain, link), link]
    changed = ledger.data_changed({each.window: each.generation for each in links})
    documents = [
        window_facts(ledger.plan(each.window, each.generation), each)
        | opinion(each.window, chain.stale_reason(each), changed.get(each.window), evaluation)
        for each in links
    ]
    agree, rows_line = rows_verdict(documents)
    document = {**documents[-1], "rows_agree": agree, "rows_line": rows_line}
    chain.judge(link, document)
    if not agree:
        raise RowsLostError(rows_line)
    return EvaluateResult(
        window=key,
        generation=link.generation,
        rows={name: link.trained(name).rows for name in link.seen},
        rows_line=rows_line,
        metrics={name: _figures(found) for name, found in document["metrics"].items()},
    )


def _warm_start(chain: ModelChain, link: Link) -> list[Link]:
    """The warm start that a line's first window was built on, if it has one."""
    parent = link.parent
    if parent is None or not is_warm_start(parent.window):
        return []
    found = chain.link(parent.window, parent.generation)
    return [found] if found is not None else []


def _figures(found: Mapping[str, Any]) -> dict[str, float]:
    """What is one number; intervals, and what could not be computed, are in what is stored only."""
    return {
        name: float(value)
        for name, value in found.items()
        if isinstance(value, (int, float)) and math.isfinite(value)
    }
