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
from forebay.executors.model_line.chain import Link, ModelChain
from forebay.executors.model_line.scores import Segments


@dataclass(frozen=True)
class Evaluation:
    """Metrics by window key, label completeness by window key, and the pooled block."""

    windows: dict[str, dict[str, Any]]
    completeness: dict[str, dict[str, Any]]
    pooled: dict[str, Any]


def evaluate(pipeline: PipelineSpec, chain: ModelChain, keys: Sequence[str]) -> Evaluation:
    """Judge the newest generation of each window; labels of later windows count too."""
    wanted = set(keys)
    horizon = label_horizon(pipeline)
    following = [key for key in chain.windows() if key >= min(wanted, default="")]
    last = max((place for place, key in enumerate(following) if key in wanted), default=-1)
    following = following[: last + horizon + 1]  # no label comes after these
    links = [link for key in following if (link := chain.newest(key)) is not None]
    segments = [_segments(chain, link) for link in links]
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
    folder = chain.folder(link.window, link.generation) / "scores"
    return Segments(link.window, folder, link.scores)
