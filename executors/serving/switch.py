"""What people decide about serving: a window of their choice, the one before, or no pin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from forebay.config.load import Project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.windows import is_warm_start
from forebay.errors import UsageError
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.commands import of_line
from forebay.executors.model_line.link import Action, FileKind, Link
from forebay.executors.model_line.serving import pinned_words, served_before
from forebay.executors.serving.current import Switched
from forebay.executors.serving.serving_path import ServingPath
from forebay.home.store.base import Stored
from forebay.home.store.open import store_of

_NAMED = 5


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
        before = served_before(self.chain.switches())
        if before is None:
            raise UsageError(
                f"nothing served before on line {self.chain.line!r} of pipeline "
                f"{self.chain.pipeline!r}: {self._ways_out()}"
            )
        link = self.chain.link(before.window, before.generation)
        self._switch(link, before.window, "rollback", why)

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
        name = f"generation {published.generation} of window {published.window}"
        words = [f"{name} serves since {published.published_at:%Y-%m-%dT%H:%M:%SZ}"]
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
        self.chain.serve(link.name, action, datetime.now(UTC), why, exported)
        path.bring_up()

    def _exported(self, link: Link) -> dict[FileKind, Stored]:
        """What has to be recorded with the link so that it may serve."""
        model, store = link.files.get("saved_model"), store_of(self.chain.home)
        if model is not None and store.is_there(model):
            store.verify(model)  # a model server has no checksums
            return {}
        if "checkpoint" not in link.files:
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
        found = [link.window for link in self.chain.links() if can_serve(link)]
        command = of_line(self.chain, "models serve")
        if not found:
            return "no window can be served yet; train one first"
        return f"`{command} WINDOW` serves {_listed(list(dict.fromkeys(found)))}"


def can_serve(link: Link) -> bool:
    kept = {"saved_model", "checkpoint"} & link.files.keys()
    return bool(kept) and not is_warm_start(link.window)


def _listed(windows: Sequence[str]) -> str:
    more = len(windows) - _NAMED
    return (f"{more} older windows and " if more > 0 else "") + ", ".join(windows[-_NAMED:])
