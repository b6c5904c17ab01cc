"""WindowEnding: makes a window that is sealed to its end a link of the line."""

from __future__ import annotations

from datetime import UTC, datetime

from forebay.errors import ForebayError, InfrastructureError
from forebay.executors.model_line.adjoining import coverage_after, covered_by
from forebay.executors.model_line.link import FileKind, Link
from forebay.executors.model_line.start import require_agreement, require_learnt
from forebay.executors.trainer.window.open_window import OpenWindow
from forebay.executors.trainer.window.parts import TrainerParts
from forebay.executors.trainer.window.sealed_rows import learnt_rows, read_rows, window_rows
from forebay.executors.window_files.checkpoints import Seal
from forebay.home.store.base import Stored
from forebay.system.files.trees import remove_tree


class WindowEnding:
    def __init__(self, parts: TrainerParts) -> None:
        self._parts = parts

    def link(self, opened: OpenWindow, sealed: Seal) -> Link:
        """The link of a window, without files; a window that may not become one starts over.

        Raises:
            ForebayError: when its rows do not agree with its plan, or none was trained on; its
                seals are removed then.
        """
        link, chain = self._link(opened, sealed), self._parts.chain
        variants = self._parts.learner.paradigms
        learnt = [sums.rows for sums in sealed.seen]
        if variants and not opened.request.warm_start:
            learnt = sealed.learnt[variants[0]]
        try:
            require_agreement(chain, opened.plan, link)
            require_learnt(chain, link, learnt)
        except ForebayError:
            chain.drop_seal(link.window, link.generation)
            remove_tree(opened.store.folder)
            raise
        return link

    def stored(self, opened: OpenWindow) -> dict[FileKind, Stored]:
        """Store the files that the link is going to name, before the link itself.

        Raises:
            DataError: when dead letters that were counted are missing.
            InfrastructureError: when the store fails, or the final checkpoint is gone.
        """
        parts = self._parts
        window = opened.request.key
        found = opened.store.newest()
        if found is None:
            raise InfrastructureError(f"window {window}: its final checkpoint is gone")
        seal, model = found
        with parts.progress.phase("store"):
            local = parts.chain.folder(window, opened.request.generation)
            return parts.archive.put_window(local, seal, model.parent, opened.letters)

    def _link(self, opened: OpenWindow, sealed: Seal) -> Link:
        parts = self._parts
        trained_rows = int(window_rows(sealed).sum())
        used_rows = opened.counters.value("used_rows")
        return Link(
            window=sealed.window,
            start=opened.request.start,
            end=opened.request.end,
            generation=sealed.generation,
            parent=sealed.parent,
            step=sealed.step,
            steps=sealed.window_step,
            base_seen=dict(zip(parts.names, sealed.base_seen, strict=True)),
            seen=dict(zip(parts.names, sealed.seen, strict=True)),
            read=read_rows(parts.names, sealed.progress),
            learnt=learnt_rows(parts.names, sealed),
            coverage=coverage_after(opened.plan, covered_by(opened.parent)),
            files={},
            resumed_from_step=opened.counters.value("resumed_from_step"),
            resumed_from_runtime=opened.resumed_from_runtime,
            reread_rows=used_rows - trained_rows + parts.reader.dropped_rows(),
            model_fingerprint=parts.model_fingerprint,
            started_at=opened.started_at,
            finished_at=datetime.now(UTC),
        )
