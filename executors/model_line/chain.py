"""The model chain: each window's model starts from the sealed model of the window before it.

A link is (pipeline, line, window, generation). Training a window again makes a new generation
from the newest model of the window before; later windows keep theirs and become stale.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection

from forebay.config.specs.windows import Interval, Spanned, Window, is_warm_start
from forebay.datatasks.plans import history, plan_rows
from forebay.errors import ConfigError, InfrastructureError
from forebay.executors.model_line import serving
from forebay.executors.model_line.link import (
    FileKind,
    Head,
    Link,
    Parent,
    Published,
    Standing,
    StoredSeal,
)
from forebay.executors.model_line.rows import (
    file_rows,
    judgement_rows,
    lease_rows,
    line_rows,
    link_rows,
    link_writer,
)
from forebay.executors.model_line.staleness import stale_reason, stale_reasons
from forebay.home.database.open import database_of
from forebay.home.paths import DEFAULT_LINE, Home
from forebay.home.store.base import Stored
from forebay.home.store.garbage import bury
from forebay.home.store.open import own_store, store_of

T = TypeVar("T")
_LOG = logging.getLogger(__name__)


class ModelChain:
    """Links of one line."""

    def __init__(
        self, home: Home, pipeline: str, line: str = DEFAULT_LINE, lease_epoch: int | None = None
    ) -> None:
        """Nothing is read or created yet.

        Args:
            home: where the line is.
            pipeline: whose line it is.
            line: its name.
            lease_epoch: the trainer's; every change that it makes is checked against it.
        """
        self._lease_epoch = lease_epoch
        self.home = home
        self.pipeline = pipeline
        self.line = line

    def folder(self, window: str, generation: int) -> Path:
        """Where a window is trained, until its link names its files in the store."""
        return self.home.model(self.pipeline, self.line, window, generation)

    def windows(self) -> list[str]:
        """Keys of all windows that have at least one link, in order."""
        return self._read(line_rows.trained_windows)

    def link(self, window: str, generation: int) -> Link | None:
        """One link, or None when that generation never reached its end."""
        return self._read(lambda rows, line: link_rows.link_of(rows, line, window, generation))

    def newest(self, window: str) -> Link | None:
        """The newest link of a window."""
        return self._read(lambda rows, line: link_rows.link_of(rows, line, window))

    def newest_of(self, windows: Iterable[str]) -> dict[str, Link]:
        """The newest links of these windows, in order; those that are not trained have none."""
        found = self._read(lambda rows, line: link_rows.newest_links(rows, line, windows))
        return {link.window: link for link in found}

    def links(self) -> list[Link]:
        """Every link, by window and generation."""
        return self._read(link_rows.all_links)

    def heads(self) -> list[Head]:
        """The newest link of each window in short, in order."""
        return self._read(link_rows.heads)

    def first(self) -> Link | None:
        """The newest link of the window that the line begins with."""
        return self._read(link_rows.first_link)

    def last(self, count: int = 1) -> list[Link]:
        """The newest links of the last windows, in order."""
        return self._read(lambda rows, line: link_rows.last_links(rows, line, count))

    def before(self, window: Spanned) -> Link | None:
        """The newest link of the last window before this one; None where the line begins."""
        return self._read(lambda rows, line: link_rows.link_before(rows, line, window))

    def over(self, span: Interval) -> list[Window]:
        """Trained windows that overlap a span, in order; they are kept when plans are forgotten."""
        return database_of(self.home).read(
            lambda rows: plan_rows.trained_over(rows, self.pipeline, self.line, span)
        )

    def between(self, first: Spanned, last: Spanned) -> list[Link]:
        """The newest links from one window to another, in order."""
        return self._read(lambda rows, line: link_rows.links_between(rows, line, first, last))

    def after(self, window: Spanned, count: int) -> list[Link]:
        """The newest links of that many windows after this one, in order."""
        return self._read(lambda rows, line: link_rows.links_after(rows, line, window, count))

    def is_trained(self, window: str, generation: int) -> bool:
        """Whether a generation has a link."""
        name = Parent(window=window, generation=generation)
        return self._read(lambda rows, line: line_rows.link_id(rows, line, name)) is not None

    def record(self, link: Link) -> None:
        """Store a link; from now on the window counts as trained in this generation.

        The window's seal in the store is no longer needed and is removed.

        Raises:
            FencedError: when another job trains the line by now.
            InfrastructureError: when its plan was forgotten meanwhile.
        """
        facts = {
            "generation": link.generation,
            "line": self.line,
            "step": link.step,
            "finished_at": link.finished_at.isoformat(),
        }

        def work(rows: Connection, line: int) -> list[str]:
            of_window = link_writer.store_link(rows, line, self.pipeline, link)
            history.note(rows, self.pipeline, link.window, "trained", facts)
            return file_rows.forget_seal(rows, line, of_window)

        self._train_and_remove(work)

    def seal(self, window: str, generation: int) -> StoredSeal | None:
        """The newest seal of a window in training that is in the store."""
        name = Parent(window=window, generation=generation)
        return self._read(lambda rows, line: file_rows.seal_of(rows, line, name))

    def record_seal(self, seal: StoredSeal) -> None:
        """Record a seal in the store, in place of the one recorded for the window before.

        Raises:
            FencedError: when another job trains the line by now.
            InfrastructureError: when its plan was forgotten meanwhile.
        """
        name = Parent(window=seal.window, generation=seal.generation)

        def work(rows: Connection, line: int) -> list[str]:
            of_window = line_rows.planned_window(rows, self.pipeline, name)
            return file_rows.store_seal(rows, line, of_window, seal)

        self._train_and_remove(work)

    def drop_seal(self, window: str, generation: int) -> None:
        """Forget the seal of a window in training: it starts over, on any host.

        Raises:
            FencedError: when another job trains the line by now.
            InfrastructureError: when its plan was forgotten meanwhile.
        """
        name = Parent(window=window, generation=generation)

        def work(rows: Connection, line: int) -> list[str]:
            return file_rows.forget_seal(
                rows, line, line_rows.planned_window(rows, self.pipeline, name)
            )

        self._train_and_remove(work)

    def standing(self, window: str) -> list[Standing]:
        """The newest link of a window, after the line's warm start if it was built on that."""

        def work(rows: Connection, line: int | None) -> list[Standing]:
            newest = link_rows.link_of(rows, line, window)
            if newest is None:
                return []
            found, parent = [newest], newest.parent
            if parent is not None and is_warm_start(parent.window):
                warm = link_rows.link_of(rows, line, parent.window, parent.generation)
                found = [warm, newest] if warm is not None else found
            return [Standing(each, stale_reason(rows, line, each)) for each in found]

        return self._read(work)

    def stale_reason(self, link: Link) -> str | None:
        """Why a link is not built on the newest models before it; None when it is."""
        return self._read(lambda rows, line: stale_reason(rows, line, link))

    def stale_reasons(self) -> dict[str, str]:
        """Windows whose models are not built on the newest ones, in order, and why."""
        return self._read(stale_reasons)

    def published(self) -> Published | None:
        """What serves now."""
        found = self._read(serving.pointer_of)
        if found is None:
            return None
        return Published(
            window=found.window,
            generation=found.generation,
            path=store_of(self.home).url(found.model),
            published_at=found.published_at,
        )

    def publish(self, link: Link, now: datetime) -> str:
        """Let a link with a SavedModel serve, or return why it may not, see `candidate`."""

        def work(rows: Connection, line: int) -> str:
            reason = serving.unfit_to_serve(rows, line, link)
            if not reason:
                serving.serve(rows, line, link, now)
            return reason

        return self._change(work)

    def begin_anew(self, *, forget_plans: bool) -> None:
        """Remove every link: the line's next window begins it. What serves, and borders, stay.

        The bytes that nothing names then are left to `forebay gc`.

        forget_plans: all windows are planned again too.
        """

        def work(rows: Connection, line: int) -> None:
            link_writer.remove_links(rows, line)
            for window in plan_rows.planned_windows(rows, self.pipeline, self.line):
                if forget_plans and plan_rows.forget(rows, self.pipeline, self.line, window):
                    facts = {"line": self.line}
                    history.note(rows, self.pipeline, window, "forgotten", facts)

        self._change(work)

    def is_begun(self) -> bool:
        """Whether a window was trained: a warm start alone binds nobody to where it ended."""
        newest = self.last()
        return bool(newest) and not is_warm_start(newest[0].window)

    def candidate(self, window: str, generation: int) -> tuple[Link, str] | None:
        """A link, and why it may not serve: an empty text when it may. None without a link."""

        def work(rows: Connection, line: int | None) -> tuple[Link, str] | None:
            link = link_rows.link_of(rows, line, window, generation)
            return None if link is None else (link, serving.unfit_to_serve(rows, line, link))

        return self._read(work)

    def judge(self, link: Link, document: Mapping[str, Any]) -> None:
        """Store the judgement of a link, in place of the one before."""
        self.judge_all([(link.name, document)])

    def judge_all(self, judged: Sequence[tuple[Parent, Mapping[str, Any]]]) -> None:
        """Store judgements of links, in place of the ones before."""

        def work(rows: Connection, line: int) -> None:
            for name, document in judged:
                judgement_rows.store(rows, line, name, json.dumps(document))

        self._change(work)

    def judgement(self, link: Link) -> dict[str, Any] | None:
        """The judgement of a link; None where it has not been judged."""
        found = self._read(lambda rows, line: judgement_rows.document(rows, line, link.name))
        return None if found is None else json.loads(found)

    def judgements(self, links: Sequence[Link]) -> dict[str, dict[str, Any]]:
        """The judgements of links, one of each window, by window; unjudged ones are left out."""
        if not links:
            return {}
        names = [link.name for link in links]
        found = self._read(lambda rows, line: judgement_rows.documents(rows, line, names))
        return {window: json.loads(text) for window, text in found.items()}

    def last_judgements(self, count: int) -> dict[str, dict[str, Any]]:
        """The judgements of the last windows, by window, in order; unjudged ones are left out."""
        found = self._read(lambda rows, line: judgement_rows.last_documents(rows, line, count))
        return {window: json.loads(text) for window, text in found.items()}

    def add_file(self, link: Link, kind: FileKind, stored: Stored) -> Link:
        """Record one more stored file of a link; returns the link with it."""

        def work(rows: Connection, line: int) -> None:
            of_link = line_rows.require_id(rows, line, link.name)
            file_rows.replace(rows, of_link, kind, stored)

        self._train(work)
        return link.model_copy(update={"files": {**link.files, kind: stored}})

    def clear_store(self, folder: str) -> None:
        """Remove what dead trainers left in a folder where only the line's trainer stores.

        Raises:
            ConfigError: when it is another home's store.
            FencedError: when another job trains the line by now.
        """
        store = own_store(self.home)
        left = [each.name for each in store.leftovers(folder)]
        found = list(store.names(folder))
        if found or left:
            buried = self._train(lambda rows, _line: bury(rows, found))
            store.remove([*buried, *left])

    def require_same_fingerprint(
        self, parent: Link, model_fingerprint: str, changes: str = ""
    ) -> None:
        """Refuse to continue from a model that was made for other features, towers or sources.

        changes: what is known of them.

        Raises:
            ConfigError: when the declaration changed in a way that changes the model.
        """
        if parent.model_fingerprint != model_fingerprint:
            said = f": {changes}" if changes else ""
            raise ConfigError(
                f"pipeline {self.pipeline!r}: features, label, model or sources changed since "
                f"window {parent.window} was trained on line {self.line!r}{said}. Train the "
                "changed pipeline on a line of its own (--line NAME; in Airflow, as a pipeline "
                "with another name), or undo the change"
            )

    def _train_and_remove(self, work: Callable[[Connection, int], list[str]]) -> None:
        """Change the line as its trainer; `work` returns names that nothing refers to any more.

        What the store cannot remove is left as garbage.
        """

        def buried(rows: Connection, line: int) -> list[str]:
            names = work(rows, line)
            return bury(rows, names) if names else []

        names = self._train(buried)
        try:
            store_of(self.home).remove(names)
        except InfrastructureError as error:
            _LOG.warning("an older seal was not removed: %s. forebay gc removes it", error)

    def _read(self, work: Callable[[Connection, int | None], T]) -> T:
        """Call `work` with the line's id, which is None before anything is stored for it."""
        return database_of(self.home).read(
            lambda rows: work(rows, line_rows.line_id(rows, self.pipeline, self.line))
        )

    def _train(self, work: Callable[[Connection, int], T]) -> T:
        """Change the line as its trainer."""

        def fenced(rows: Connection, line: int) -> T:
            if self._lease_epoch is not None:
                lease_rows.require(rows, line, self._lease_epoch)
            return work(rows, line)

        return self._change(fenced)

    def _change(self, work: Callable[[Connection, int], T]) -> T:
        """Call `work` while nobody else changes the line."""
        return database_of(self.home).transact(
            lambda rows: work(rows, line_rows.locked_line(rows, self.pipeline, self.line))
        )
