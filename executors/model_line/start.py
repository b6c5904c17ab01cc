"""Where a model line begins, and which windows may come next."""

from __future__ import annotations

from collections.abc import Mapping

from forebay.config.pipelines import PipelineSpec
from forebay.config.sources import SourceSpec
from forebay.config.windows import (
    Window,
    WindowGrid,
    is_warm_start,
    warm_start_window,
)
from forebay.errors import ConfigError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Link
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of


def warm_start_of(pipeline: PipelineSpec, chain: ModelChain, first: Window) -> Window | None:
    """The warm start that a run beginning with `first` needs, trained or not; None without one."""
    start = pipeline.train.warm_start
    if start is None or start >= first.start:
        return None
    begin = chain.first()
    if begin is None:
        return warm_start_window(start, first)
    if begin.start > first.start:
        return None  # the line began after this window, without a warm start
    if not is_warm_start(begin.window):
        return None
    return warm_start_window(start, pipeline.dataset.grid.at(begin.end))


def require_compatible(
    chain: ModelChain, pipeline: PipelineSpec, sources: Mapping[str, SourceSpec]
) -> None:
    """A line continues only with the features, label and model that it was trained for so far.

    Raises:
        ConfigError: when the declaration was changed.
    """
    for newest in chain.last():
        chain.require_same_fingerprint(newest, model_fingerprint_of(pipeline, sources))


def require_checkpoint(chain: ModelChain, parent: Link | None, windows_kept: int) -> None:
    """Let a window be trained whose parent's checkpoint is there, or that has no parent.

    windows_kept: how many windows keep theirs, for the message.

    Raises:
        ConfigError: when the checkpoint is not kept any more.
    """
    if parent is None or "checkpoint" in parent.files:
        return
    heads = [head for head in chain.heads() if not is_warm_start(head.name.window)]
    kept = next((head.name.window for head in heads if head.has_checkpoint), None)
    ways = [] if kept is None else [f"begin with the window after {kept}"]
    if heads:
        first = heads[0].name.window
        ways.append(f"train the line again from its start (--reprocess --from {first})")
    ways.append("train a line of its own (--line NAME)")
    raise ConfigError(
        f"window {parent.window} cannot be built on any more: its checkpoint is not kept on line "
        f"{chain.line!r} (job.checkpoint.windows_kept is {windows_kept}). Way out: "
        + ", or ".join(ways)
    )


def gap_before(chain: ModelChain, grid: WindowGrid, first: Window) -> str:
    """Why a line cannot continue with window `first`; an empty text when it can.

    A window's model starts from the window before it, so none may be left out, and no row may be
    trained twice.
    """
    over = chain.over(first.start)
    if over is not None and is_warm_start(over.window) and not is_warm_start(first.key):
        return (
            f"window {first.key} is part of the warm start {over.window} that this line begins "
            f"with: its rows are trained already. Windows of this line begin with "
            f"{grid.at(over.end).key}; train earlier ones on a line of their own (--line NAME)"
        )
    last = chain.before(first)
    if last is None or first.start <= last.end:
        return ""
    expected = grid.at(last.end).key
    return (
        f"windows {expected} up to {first.key} are not trained yet, and each starts "
        f"from the one before it: run --from {expected}"
    )
