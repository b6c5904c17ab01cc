"""What people decide about serving: a window of their choice, the one before, or no pin."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from forebay.config.load import Project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.windows import is_warm_start
from forebay.errors import DataError, UsageError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.commands import of_line
from forebay.executors.model_line.link import Action, FileKind, Link, ServedModel
from forebay.executors.model_line.serving import pinned_words, served_before
from forebay.executors.serving.current import Switched
from forebay.executors.serving.serving_path import ServingPath
from forebay.home.store.base import Stored
from forebay.home.store.open import store_of

_NAMED = 5
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Serving:
    """What serves on one line; each change is pinned, and brings up the line's path."""

    project: Project
    pipeline: PipelineSpec
    chain: ModelChain

    @property
    def path(self) -> ServingPath:
        return ServingPath(self.project, self.pipeline, self.chain)

    def serve(self, window: str, why: str = "") -> None:
        """Let the newest model of a window serve, exported from its checkpoint if need be.

        Raises:
            UsageError: when it is not trained, or no file of it is kept; the text names others.
            ForebayError: see `export_window` and `ServingPath.bring_up`.
        """
        self._switch(self.chain.newest(window), window, "serve", why)

    def roll_back(self, why: str = "") -> None:
        """Let the model serve that served before; raises as `serve`.

        Raises:
            UsageError: when none did.
        """
        kept = [each.model for each in self.chain.exports()]
        before = served_before(self.chain.switches(), kept)
        if before is None:
            raise UsageError(
                f"nothing served before on line {self.chain.line!r} of pipeline "
                f"{self.chain.pipeline!r}: {self._ways_out()}"
            )
        if before.step:
            self.path.require_own()
            self._verify(before)
            self.chain.serve(before, "rollback", datetime.now(UTC), why)
            self.path.bring_up()
            return
        link = self.chain.link(before.window, before.generation)
        self._switch(link, before.window, "rollback", why)

    def _verify(self, model: ServedModel) -> None:
        """A model server has no checksums."""
        for each in self.chain.exports():
            if each.model == model:
                store_of(self.chain.home).verify(each.stored)

    def unpin(self, why: str = "") -> bool:
        """Let later windows serve again, as they are published; whether there was a pin."""
        was_pinned = self.chain.published() is not None and self.chain.unpin(why)
        self.path.bring_up()
        return was_pinned

    def facts(self) -> dict[str, object] | None:
        """What serves, for programs; None where nothing does. path: of this model, if it is up."""
        published = self.chain.published()
        if published is None:
            return None
        place = None if self.path.is_behind(published) else self.path.place
        return {
            **Switched.of(self.chain, published).model_dump(mode="json"),
            "pinned": published.pinned,
            "stored": published.path,
            "path": place and f"{place.url}/{published.integer}",
        }

    def words(self) -> list[str]:
        """The same for people."""
        published, path = self.chain.published(), self.path
        if published is None:
            return [f"nothing serves on line {self.chain.line!r} of {self.chain.pipeline}"]
        since = f"{published.published_at:%Y-%m-%dT%H:%M:%SZ}"
        words = [f"{published.words} serves since {since}"]
        link = self.chain.link(published.window, published.generation)
        stale = None if link is None else self.chain.stale_reason(link)
        if stale:
            words.append(f"it is {stale}")
        if published.pinned:
            words.append(pinned_words(published.window, self.chain.pipeline, self.chain.line))
        if path.place is not None and path.is_behind(published):
            words.append(f"{path.place.url} is behind: `forebay gc` brings it up")
        elif path.place is not None:
            words.append(f"path  {path.place.url}/{published.integer}")
        return [*words, f"stored  {published.path}"]

    def _switch(self, link: Link | None, window: str, action: Action, why: str) -> None:
        if link is None or is_warm_start(link.window):
            raise UsageError(
                f"window {window} has no model on line {self.chain.line!r} of pipeline "
                f"{self.chain.pipeline!r}: {self._ways_out()}"
            )
        path = self.path
        path.require_own()
        exported = self._exported(link)
        model = link.model
        self.chain.serve(model, action, datetime.now(UTC), why, exported)
        path.bring_up()

    def _exported(self, link: Link) -> dict[FileKind, Stored]:
        """What has to be recorded with the link so that it may serve.

        A model that is damaged is exported again while its checkpoint is kept.
        """
        model, store = link.files.get("saved_model"), store_of(self.chain.home)
        has_checkpoint = "checkpoint" in link.files
        if model is not None and store.is_there(model):
            try:
                store.verify(model)  # a model server has no checksums
                return {}
            except DataError as error:
                if not has_checkpoint:
                    raise
                _LOG.warning("%s; window %s is exported again", error, link.window)
        if not has_checkpoint:
            job = self.pipeline.job
            raise UsageError(
                f"generation {link.generation} of window {link.window} can no longer be served: "
                f"neither its model (job.publish.windows_kept is {job.exports_kept}) nor its "
                f"checkpoint (job.checkpoint.windows_kept is {job.checkpoints_kept}) is kept. "
                f"{self._ways_out()}"
            )
        from forebay.executors.serving.export_window import export_window

        return export_window(self.project, self.pipeline, self.chain, link)

    def _ways_out(self) -> str:
        newest = {link.window: link for link in self.chain.links()}
        found = [
            window
            for window, link in newest.items()
            if not is_warm_start(window) and {"saved_model", "checkpoint"} & link.files.keys()
        ]
        command = of_line(self.chain, "models serve")
        if not found:
            return "no window can be served yet; train one first"
        return f"`{command} WINDOW` serves {_listed(found)}"


def _listed(windows: Sequence[str]) -> str:
    more = len(windows) - _NAMED
    return (f"{more} older windows and " if more > 0 else "") + ", ".join(windows[-_NAMED:])
