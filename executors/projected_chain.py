"""A model chain as it will be once some windows are trained; only in memory."""

from __future__ import annotations

from forebay.config.windows import Window, order_of
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.link import Head, Parent
from forebay.executors.model_line.staleness import break_reason


class ProjectedChain:
    """The newest links of a line, including those to come."""

    def __init__(self, chain: ModelChain) -> None:
        """Start with the stored links."""
        self._heads = {head.name.window: head for head in chain.heads()}
        self._missing: list[str] = []

    def train(self, window: Window, generation: int) -> None:
        """Add one more window, built on the newest model of the window before it."""
        earlier = [head for head in self._ordered() if head.order < order_of(window)]
        parent = earlier[-1] if earlier else None
        if parent is not None and not parent.has_checkpoint:
            self._missing.append(parent.name.window)
        name = Parent(window=window.key, generation=generation)
        origin = parent.name if parent is not None else None
        self._heads[window.key] = Head(order_of(window), name, origin, has_checkpoint=True)

    def stale(self) -> list[str]:
        """Windows whose models will not be built on the newest ones, in order."""
        heads = self._ordered()
        befores = [None, *(head.name for head in heads)]
        for place, (head, before) in enumerate(zip(heads, befores, strict=False)):
            if break_reason(head.parent, before) is not None:
                return [later.name.window for later in heads[place:]]
        return []

    def not_kept(self) -> list[str]:
        """Why windows cannot be built on those before them: their checkpoints are gone."""
        return [
            f"window {key} cannot be built on: its checkpoint is no longer kept "
            "(job.checkpoint.windows_kept)"
            for key in self._missing
        ]

    def _ordered(self) -> list[Head]:
        return sorted(self._heads.values(), key=lambda head: head.order)
