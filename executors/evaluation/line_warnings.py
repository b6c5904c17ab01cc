"""What whoever trains a line should be told of its labels, from what the line has measured."""

from __future__ import annotations

from typing import Any

from forebay.config.pipelines import PipelineSpec
from forebay.errors import DataError
from forebay.executors.advice.line import late_label_warnings
from forebay.executors.evaluation.windows import evaluate
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link

WINDOWS_MAX = 24  # what the labels were like before may have changed
JOINED_ROWS_MAX = 5_000_000  # a window is joined again only where that reads no more


def line_warnings(pipeline: PipelineSpec, chain: ModelChain) -> list[str]:
    """Warnings about a line, from judgements of its last windows; none where all is well.

    A window is judged when it ends, before labels have come that are late. So the last one whose
    labels are all there is joined with them again, unless that would read many rows.
    """
    horizon = pipeline.dataset.label_horizon
    links = chain.last(max(WINDOWS_MAX, horizon + 1))
    windows: dict[str, dict[str, Any]] = chain.judgements(links)
    due = links[-horizon - 1] if len(links) > horizon else None
    if due is not None and due.window in windows and _rows(links[-horizon - 1 :]) < JOINED_ROWS_MAX:
        try:
            counts = evaluate(pipeline, chain, [due]).completeness.get(due.window)
        except DataError as error:
            return [f"whether its labels come late is not known: window {due.window}: {error}"]
        windows[due.window] = windows[due.window] | {"label_completeness": counts}
    return late_label_warnings(pipeline, list(windows.values()))


def _rows(links: list[Link]) -> int:
    return sum(link.trained(name).rows for link in links for name in link.seen)
