"""A model chain as it will be once some windows are trained: in memory, nothing is written."""

from __future__ import annotations

from datetime import UTC, datetime

from forebay.executors.model_line.chain import Link, ModelChain, Parent
from forebay.executors.model_line.checkpoints import CheckpointStore

_NEVER = datetime(1, 1, 1, tzinfo=UTC)


class ProjectedChain(ModelChain):
    """The links of a chain and those that are to come; every rule of the chain holds for both."""

    def __init__(self, chain: ModelChain) -> None:
        """Start with what is there."""
        super().__init__(chain.home, chain.pipeline, chain.line)
        self._new: dict[str, Link] = {}
        self._missing: list[str] = []

    def train(self, window: str, generation: int) -> None:
        """One more window, built on the newest model of the window before it."""
        parent = self.before(window)
        if parent is not None and parent.window not in self._new and not self._is_kept(parent):
            self._missing.append(parent.window)
        self._new[window] = Link(
            window=window,
            generation=generation,
            parent=Parent(window=parent.window, generation=parent.generation) if parent else None,
            step=0,
            steps=0,
            base_seen={},
            seen={},
            progress={},
            scores=[],
            resumed_from_step=0,
            reread_rows=0,
            model_fingerprint="",
            started_at=_NEVER,
            finished_at=_NEVER,
        )

    def not_kept(self) -> list[str]:
        """Why windows cannot be built on those before them: their checkpoints are gone."""
        return [
            f"window {key} cannot be built on: its checkpoint is not kept "
            "(job.checkpoint.windows_kept)"
            for key in self._missing
        ]

    def windows(self) -> list[str]:
        """Keys of all windows that have or will have a link."""
        return sorted({*super().windows(), *self._new})

    def generations(self, window: str) -> list[int]:
        """Generations that are or will be trained to their end."""
        new = self._new.get(window)
        return sorted({*super().generations(window), *([new.generation] if new else [])})

    def link(self, window: str, generation: int) -> Link | None:
        """One link; one that is to come holds its parent and no rows."""
        new = self._new.get(window)
        if new is not None and new.generation == generation:
            return new
        return super().link(window, generation)

    def _is_kept(self, link: Link) -> bool:
        return CheckpointStore(self.folder(link.window, link.generation)).newest() is not None
