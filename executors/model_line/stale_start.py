"""Windows that would be trained on top of a stale model, and the command that repairs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from forebay.config.windows import Window, first_window_key, order_of
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.commands import retrain_command


class StaleStart(NamedTuple):
    """What is wrong, and the command that trains the stale windows again, and the window."""

    reason: str
    command: str


def stale_start(chain: ModelChain, windows: Sequence[Window]) -> StaleStart | None:
    """The first of these windows, trained in this order, that starts from a stale model.

    A model between two of them becomes stale when the earlier one is trained.
    """
    last: Window | None = None
    for window in windows:
        follows = last is not None and last.end == window.start
        parent = None if follows else chain.before(window)
        reason = first = None
        if parent is not None and last is not None and order_of(last) < order_of(parent):
            reason, first = f"stale once window {last.key} is trained again", last.key
        elif parent is not None and (reason := chain.stale_reason(parent)):
            first = next(iter(chain.stale_reasons()))
        if parent is not None and reason and first:
            return StaleStart(
                f"window {window.key} starts from the model of window {parent.window}, which is "
                f"{reason}",
                retrain_command(chain, first_window_key(first), window.key),
            )
        last = window
    return None
