"""Judgements of earlier windows, completed once every window with their labels is trained.

A judgement is stored when its window is trained. While complete labels are still to come with later
windows, its figures are partial and marked so. They are recomputed and stored when the last of
these windows is judged, so that no figure stays partial.
"""

from __future__ import annotations

from typing import Any

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.windows import Interval
from forebay.executors.evaluation.windows import evaluate
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link

Json = dict[str, Any]


def complete_judgements(
    pipeline: PipelineSpec, chain: ModelChain, first: Link, last: Link
) -> dict[str, Json]:
    """Complete the stored judgements of windows whose last labels came with a range of windows.

    Args:
        pipeline: whose windows they are.
        chain: the line that trained them.
        first: the first of the windows that were trained or judged now.
        last: the last of them.

    Returns:
        The new judgements, by window.

    Raises:
        DataError: see `evaluate`.
    """
    dataset = pipeline.dataset
    if not dataset.label_delay:
        return {}  # no label comes later than its window
    since = first.start - (dataset.label_horizon + 1) * (first.end - first.start)
    known = chain.between(Interval(since, since), last)
    to = last.end - dataset.label_delay
    whole = [one for one in known if one.end <= to and one.has_scores]
    stored = chain.judgements(whole)
    waiting = [one for one in whole if one.window in stored and _is_partial(stored[one.window])]
    if not waiting:
        return {}
    found = evaluate(pipeline, chain, waiting)
    completed = {
        one.window: {
            **stored[one.window],
            "metrics": found.windows[one.window],
            "label_completeness": found.completeness[one.window],
            "event": found.events[one.window],
            **({"labels": found.parts(one.window)} if found.labels else {}),
        }
        for one in waiting
    }
    chain.judge_all([(one.name, completed[one.window]) for one in waiting])
    return completed


def _is_partial(judgement: Json) -> bool:
    """Whether complete labels were still to come."""
    return not (judgement.get("event") or {}).get("complete")
