"""Metrics of trained windows, from the stored scores and the labels that arrived since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from forebay.config.pipelines import PipelineSpec
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


@dataclass(frozen=True)
class Evaluation:
    """Metrics by window key, label completeness by window key, and the pooled block."""

    windows: dict[str, dict[str, Any]]
    completeness: dict[str, dict[str, Any]]
    pooled: dict[str, Any]


def evaluate(pipeline: PipelineSpec, chain: ModelChain, links: Sequence[Link]) -> Evaluation:
    """Judge links, given in order; labels of later windows count too."""
    wanted = {link.window for link in links}
    horizon = label_horizon(pipeline)  # no label comes from windows after that
    following = chain.between(links[0], links[-1], horizon) if links else []
    segments = [_segments(chain, link) for link in following]
    paradigms = pipeline.train.paradigms if pipeline.model.kind == "towers" else []
    boards: list[Scored] = [
        board for board in score_windows(segments, paradigms, horizon) if board.window in wanted
    ]
    return Evaluation(
        windows={board.window: window_metrics(board) for board in boards},
        completeness={board.window: label_completeness([board]) for board in boards},
        pooled=summarise_scores(boards),
    )


def label_horizon(pipeline: PipelineSpec) -> int:
    """Windows after its own in which a row's complete label may still come.

    A row's batch copy comes `offset` after it happened and its stream copy possibly later than
    that instant's window; one window more covers rows published after their window's end.
    """
    grid = pipeline.dataset.grid
    one = grid.at(pipeline.dataset.start)
    size = one.end - one.start
    offsets = [stream.offset for stream in pipeline.dataset.streams.values()]
    return -(-max(offsets) // size) + 1


def _segments(chain: ModelChain, link: Link) -> Segments:
    stored = link.files.get("scores")
    return Segments(link.window, store_of(chain.home).tree(stored) if stored else None)
