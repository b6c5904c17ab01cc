"""The commands that messages about a line advise."""

from __future__ import annotations

from forebay.config.specs.windows import first_window_key, is_warm_start
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.serving import line_command


def of_line(chain: ModelChain, command: str) -> str:
    """`forebay COMMAND PIPELINE [--line LINE]`."""
    return line_command(command, chain.pipeline, chain.line)


FOLLOW = "--follow"


def run_command(chain: ModelChain, first: str, last: str) -> str:
    return f"{of_line(chain, 'run')} --from {first} --to {last}"


def retrain_command(chain: ModelChain, first: str, last: str) -> str:
    """Train trained windows again, see `retrained_from`.

    A warm start, which no range covers, is forgotten: the line's next run trains it again.
    """
    if is_warm_start(first):
        return f"{of_line(chain, 'forget')} {first}"
    return f"{run_command(chain, retrained_from(chain, first), last)} --reprocess"


def retrained_from(chain: ModelChain, first: str) -> str:
    """Where to begin to train a window again: at the line's start if no later model is kept."""
    of = chain.newest(first)
    before = None if of is None else chain.before(of)
    if before is None or "checkpoint" in before.files:
        return first
    return first_window_key(chain.windows()[0])
