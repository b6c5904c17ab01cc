"""Metrics of trained windows, from the stored scores and the labels that arrived since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from forebay.config.pipelines import PipelineSpec
from forebay.errors import DataError
from forebay.executors.evaluation.scoreboard import (
    Scored,
    label_completeness,
    score_windows,
    summarise_scores,
    window_metrics,
)
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.executors.window_files.scores import Segments
from forebay.home.store import store_of

# A trainer or forebay gc may remove scores while others are read, once for each trained window.
_LOOKS_MAX = 5


@dataclass(frozen=True)
class Evaluation:
    """Metrics by window key, label completeness by window key, and the pooled block.

    notes: for people, on what the figures leave out.
    """

    windows: dict[str, dict[str, Any]]
    completeness: dict[str, dict[str, Any]]
    pooled: dict[str, Any]
    notes: tuple[str, ...] = ()


def evaluate(pipeline: PipelineSpec, chain: ModelChain, links: Sequence[Link]) -> Evaluation:
    """Judge links, given in order; labels of later windows count too.

    Of a link whose scores are not kept any more, the figures are those of its judgement.

    Raises:
        DataError: when scores that are kept are missing or damaged.
    """
    for _ in range(_LOOKS_MAX - 1):
        try:
            return _evaluate(pipeline, chain, links)
        except DataError:
            known = {link.name: link for link in chain.links()}
            now = [known.get(link.name, link) for link in links]
            if now == links:
                raise
            links = now  # scores went while they were to be read: their judgements are there
    return _evaluate(pipeline, chain, links)


def _evaluate(pipeline: PipelineSpec, chain: ModelChain, links: Sequence[Link]) -> Evaluation:
    wanted = {link.window for link in links}
    horizon = pipeline.dataset.label_horizon  # no label comes from windows after that
    segments = [_segments(chain, link) for link in _with_labels(chain, links, horizon)]
    paradigms = pipeline.train.paradigms if pipeline.model.kind == "towers" else []
    boards: list[Scored] = [
        board for board in score_windows(segments, paradigms, horizon) if board.window in wanted
    ]
    judged = chain.judgements([link for link in links if not link.has_scores])
    metrics = {board.window: window_metrics(board) for board in boards}
    completeness = {board.window: label_completeness([board]) for board in boards}
    return Evaluation(
        windows=metrics | {key: each["metrics"] for key, each in judged.items()},
        completeness=completeness
        | {key: each["label_completeness"] for key, each in judged.items()},
        pooled=summarise_scores([board for board in boards if board.window not in judged]),
        notes=_notes(len(judged)),
    )


def _with_labels(chain: ModelChain, links: Sequence[Link], horizon: int) -> list[Link]:
    """The links, those between them, and those of so many windows after them, in order."""
    if not links:
        return []
    within = chain.between(links[0], links[-1]) if len(links) > 1 else links
    return [*within, *chain.after(links[-1], horizon)]


def _notes(judged: int) -> tuple[str, ...]:
    if not judged:
        return ()
    note = (
        f"windows whose scores are not kept any more (job.windows_kept): {judged}; their figures "
        "are those of their judgements, and no part of the pooled ones"
    )
    return (note,)


def _segments(chain: ModelChain, link: Link) -> Segments:
    stored = link.files.get("scores")
    return Segments(link.window, store_of(chain.home).tree(stored) if stored else None)
