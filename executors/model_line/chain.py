"""The model chain: each window's model starts from the sealed model of the window before it.

A link is (pipeline, line, window, generation). Training a window again makes a new generation
from the newest model of the window before; later windows keep theirs and become stale.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from forebay.datatasks.tasks import TaskProgress
from forebay.errors import ConfigError
from forebay.home.format import record_format
from forebay.home.paths import DEFAULT_LINE, Home
from forebay.mixture.row_sums import RowSums
from forebay.system.files import make_folder, write_atomically
from forebay.system.locks import locked
from forebay.system.message import Message
from forebay.system.trees import remove_tree

LINK_NAME = "window.json"
_PUBLISH_LOCK_SECONDS = 30.0


class Parent(Message):
    """The link that a model was started from."""

    window: str
    generation: int


class Link(Message):
    """One trained window.

    base_seen and seen: the model's row sums before and after this window, by source name.
    model_fingerprint: fingerprint of everything that decides the model's shape and meaning.
    """

    window: str
    generation: int
    parent: Parent | None
    step: int
    steps: int
    base_seen: dict[str, RowSums]
    seen: dict[str, RowSums]
    progress: dict[str, TaskProgress]
    scores: list[str]
    resumed_from_step: int
    reread_rows: int
    model_fingerprint: str
    started_at: datetime
    finished_at: datetime

    def trained(self, source: str) -> RowSums:
        """What this window trained of one source, from the model's own variables."""
        before = self.base_seen.get(source, RowSums())
        after = self.seen.get(source, RowSums())
        return RowSums(
            rows=after.rows - before.rows,
            sum=_wrap(after.sum - before.sum),
            sum_of_squares=_wrap(after.sum_of_squares - before.sum_of_squares),
        )


class Published(Message):
    """The pointer to the model that serves."""

    window: str
    generation: int
    path: str
    published_at: datetime


class ModelChain:
    """Links of one line, newest generations first in every answer."""

    def __init__(self, home: Home, pipeline: str, line: str = DEFAULT_LINE) -> None:
        """Nothing is read or created yet."""
        self.home = home
        self.pipeline = pipeline
        self.line = line

    def folder(self, window: str, generation: int) -> Path:
        """Where the checkpoints, scores and SavedModel of a link are stored."""
        return self.home.model(self.pipeline, self.line, window, generation)

    def saved_model(self, window: str, generation: int) -> Path:
        """The folder of a link's SavedModel; it exists when the link ended a job."""
        return self.folder(window, generation) / "saved_model"

    def windows(self) -> list[str]:
        """Keys of all windows that have at least one link, in order."""
        root = self.home.line(self.pipeline, self.line)
        if not root.is_dir():
            return []
        return sorted(path.name for path in root.iterdir() if self.generations(path.name))

    def generations(self, window: str) -> list[int]:
        """Generations of a window that were trained to its end, ascending."""
        root = self.home.line(self.pipeline, self.line) / window
        if not root.is_dir():
            return []
        return sorted(int(path.parent.name[1:]) for path in root.glob(f"g*/{LINK_NAME}"))

    def link(self, window: str, generation: int) -> Link | None:
        """One link, or None when that generation never reached its end."""
        return Link.of_file(self.folder(window, generation) / LINK_NAME)

    def newest(self, window: str) -> Link | None:
        """The newest link of a window."""
        generations = self.generations(window)
        return self.link(window, generations[-1]) if generations else None

    def before(self, window: str) -> Link | None:
        """The newest link of the last window before this one; None where the line begins."""
        earlier = [key for key in self.windows() if key < window]
        return self.newest(earlier[-1]) if earlier else None

    def record(self, link: Link) -> None:
        """Store a link; from now on the window counts as trained in this generation."""
        record_format(self.home)
        path = self.folder(link.window, link.generation) / LINK_NAME
        write_atomically(path, link.model_dump_json(indent=1))

    def stale_reason(self, link: Link) -> str | None:
        """Why a link is not built on the newest models before it; None when it is."""
        current: Link | None = link
        while current is not None:
            parent, before = current.parent, self.before(current.window)
            if before is not None and (parent is None or parent.window != before.window):
                return f"stale (built before {before.window} was trained)"
            if parent is None:
                return None
            if self.generations(parent.window)[-1:] != [parent.generation]:
                return f"stale (built on generation {parent.generation} of {parent.window})"
            current = self.link(parent.window, parent.generation)
        return None

    def stale(self) -> list[str]:
        """Windows whose models are not built on the newest ones, in order."""
        links = [self.newest(key) for key in self.windows()]
        return [link.window for link in links if link and self.stale_reason(link)]

    def published(self) -> Published | None:
        """What serves now."""
        return Published.of_file(self.home.published(self.pipeline, self.line))

    def drop_checkpoints(self, windows_kept: int) -> None:
        """Remove checkpoints of all but the newest windows; links, scores and models stay."""
        for window in self.windows()[:-windows_kept]:
            for generation in self.generations(window):
                remove_tree(self.folder(window, generation) / "checkpoints")

    def publish(self, link: Link, model: Path, now: datetime) -> bool:
        """Let a link serve, if nothing speaks against it; see `unfit_to_serve`."""
        place = self.home.published(self.pipeline, self.line)
        make_folder(place.parent)
        # Of two that publish at once the later window has to win.
        with locked(place.with_suffix(".lock"), _PUBLISH_LOCK_SECONDS):
            if self.unfit_to_serve(link):
                return False
            pointer = Published(
                window=link.window, generation=link.generation, path=str(model), published_at=now
            )
            write_atomically(place, pointer.model_dump_json())
        return True

    def unfit_to_serve(self, link: Link) -> str:
        """Why a link may not serve; an empty text when it may.

        Publication never moves back to an earlier window, and never to a stale or replaced model.
        """
        stale, serving = self.stale_reason(link), self.published()
        if stale:
            return f"generation {link.generation} of window {link.window} is {stale}"
        newest = self.generations(link.window)[-1:]
        if newest > [link.generation]:
            return f"window {link.window} has been trained anew, as generation {newest[0]}"
        if serving is not None and link.window < serving.window:
            return f"window {serving.window}, which is later, serves"
        return ""

    def require_same_fingerprint(self, parent: Link, model_fingerprint: str) -> None:
        """Refuse to continue from a model that was made for other features or towers.

        Raises:
            ConfigError: when the declaration changed in a way that changes the model.
        """
        if parent.model_fingerprint != model_fingerprint:
            raise ConfigError(
                f"pipeline {self.pipeline!r}: features, label or model changed since window "
                f"{parent.window} was trained on line {self.line!r}. Train the changed pipeline on "
                "a line of its own (--line NAME), or undo the change"
            )


def _wrap(value: int) -> int:
    """Reduce to signed 64 bits, as the model's own variables do."""
    return (value + 2**63) % 2**64 - 2**63
