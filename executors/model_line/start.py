"""Where a model line begins, and which windows may come next."""

from __future__ import annotations

from collections.abc import Mapping

from forebay.config.pipelines import PipelineSpec
from forebay.config.sources import SourceSpec
from forebay.config.windows import (
    Window,
    WindowGrid,
    first_window_key,
    is_warm_start,
    warm_start_window,
)
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of


def warm_start_of(pipeline: PipelineSpec, chain: ModelChain, first: Window) -> Window | None:
    """The warm start that a run beginning with `first` needs, trained or not; None without one."""
    start = pipeline.train.warm_start
    if start is None or start >= first.start:
        return None
    existing = chain.windows()
    if existing and existing[0] > first.key:
        return None  # the line began after this window, without a warm start
    if existing:
        if not is_warm_start(existing[0]):
            return None
        first = pipeline.dataset.grid.parse(first_window_key(existing[0]))
    return warm_start_window(start, first)


def require_compatible(
    chain: ModelChain, pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]
) -> None:
    """A line continues only with the features, label and model that it was trained for so far.

    Raises:
        ConfigError: when the declaration was changed.
    """
    windows = chain.windows()
    if windows and (newest := chain.newest(windows[-1])) is not None:
        chain.require_same_fingerprint(newest, model_fingerprint_of(pipeline, sources))


def gap_before(chain: ModelChain, grid: WindowGrid, first: str) -> str:
    """Why a line cannot continue with window `first`; an empty text when it can.

    A window's model starts from the window before it, so none may be left out.
    """
    trained = [key for key in chain.windows() if key < first]
    if not trained:
        return ""
    last = trained[-1]
    expected = first_window_key(last) if is_warm_start(last) else grid.after(grid.parse(last)).key
    if is_warm_start(last) and first < expected:
        return (
            f"window {first} is part of the warm start {last} that this line begins with: its rows "
            f"are trained already. Windows of this line begin with {expected}; train earlier ones "
            "on a line of their own (--line NAME)"
        )
    if first <= expected:
        return ""
    return (
        f"windows {expected} up to {first} are not trained yet, and each starts "
        f"from the one before it: run --from {expected}"
    )
