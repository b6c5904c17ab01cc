"""The model chain: each window's model starts from the sealed model of the window before it.

A link is (pipeline, line, window, generation). Training a window again makes a new generation
from the newest model of the window before; later windows keep theirs and become stale.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from forebay.config.specs.windows import Interval, Window, is_warm_start
from forebay.datatasks.plans import history, plan_rows
from forebay.errors import ConfigError, InfrastructureError
from forebay.executors.model_line import serving, staleness
from forebay.executors.model_line.judgement import Judgement
from forebay.executors.model_line.link import (
    Action,
    FileKind,
    InnerExport,
    Link,
    Parent,
    Published,
    ServedModel,
    StoredSeal,
)
from forebay.executors.model_line.rows import (
    export_rows,
    file_rows,
    judgement_rows,
    lease_rows,
    line_rows,
    link_rows,
    link_writer,
    pause_rows,
)
from forebay.home.database.open import database_of
from forebay.home.paths import DEFAULT_LINE, Home
from forebay.home.store.base import Stored
from forebay.home.store.garbage import bury
from forebay.home.store.open import own_store, store_of
from forebay.system.instants import from_us, now_us

T = TypeVar("T")
P = ParamSpec("P")
_LOG = logging.getLogger(__name__)


def _reading(
    work: Callable[Concatenate[Connection, int | None, P], T],
) -> Callable[Concatenate[ModelChain, P], T]:
    """A method that calls `work` with the line's id, see `ModelChain._read`."""

    def method(self: ModelChain, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._read(lambda rows, line: work(rows, line, *args, **kwargs))

    return method


class ModelChain:
    """Links of one line.

    lease_epoch: the trainer's; every change that it makes is checked against it.
    """

    def __init__(
        self, home: Home, pipeline: str, line: str = DEFAULT_LINE, lease_epoch: int | None = None
    ) -> None:
        self._lease_epoch = lease_epoch
        self.home = home
        self.pipeline = pipeline
        self.line = line

    windows = _reading(line_rows.trained_windows)
    link = _reading(link_rows.link_of)
    newest_of = _reading(link_rows.newest_links)
    links = _reading(link_rows.all_links)
    first = _reading(link_rows.first_link)
    last = _reading(link_rows.last_links)
    before = _reading(link_rows.link_before)
    between = _reading(link_rows.links_between)
    after = _reading(link_rows.links_after)
    switches = _reading(serving.switches_of)
    seal = _reading(file_rows.seal_of)
    exports = _reading(export_rows.of_line)
    pauses = _reading(pause_rows.heeded)
    judgements = _reading(judgement_rows.documents)
    last_judgements = _reading(judgement_rows.last_documents)
    stale_reason = _reading(staleness.stale_reason)
    stale_reasons = _reading(staleness.stale_reasons)

    def folder(self, window: str, generation: int) -> Path:
        """Where a window is trained, until its link names its files in the store."""
        return self.home.model(self.pipeline, self.line, window, generation)

    def newest(self, window: str) -> Link | None:
        return self.link(window)

    def over(self, span: Interval) -> list[Window]:
        """Trained windows that overlap a span, in order; they are kept when plans are forgotten."""
        return database_of(self.home).read(
            lambda rows: plan_rows.trained_over(rows, self.pipeline, self.line, span)
        )

    def is_trained(self, window: str, generation: int) -> bool:
        name = Parent(window=window, generation=generation)
        return self._read(lambda rows, line: line_rows.link_id(rows, line, name)) is not None

    def record(self, link: Link) -> None:
        """Store a link; from now on the window counts as trained in this generation.

        The window's seal in the store is no longer needed and is removed. So are models of later
        windows that had not ended: they were not started from this link.

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
            why = f"window {link.window} was trained as generation {link.generation}"
            gone = [each for each in export_rows.of_line(rows, line) if _is_outdone(each, link)]
            withdrawn = serving.withdraw(rows, line, gone, link.finished_at, why)
            return [*file_rows.forget_seal(rows, line, of_window), *withdrawn]

        self._train_and_remove(work)

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
        """Forget the seal, and exports, of a window in training: it starts over, on any host.

        Raises:
            FencedError: when another job trains the line by now.
            InfrastructureError: when its plan was forgotten meanwhile.
        """
        name = Parent(window=window, generation=generation)

        def work(rows: Connection, line: int) -> list[str]:
            of_window = line_rows.planned_window(rows, self.pipeline, name)
            gone = [each for each in export_rows.of_line(rows, line) if each.window == window]
            why = f"window {window} starts over"
            withdrawn = serving.withdraw(rows, line, gone, from_us(now_us()), why)
            return [*file_rows.forget_seal(rows, line, of_window), *withdrawn]

        self._train_and_remove(work)

    def standing(self, window: str) -> list[tuple[Link, str | None]]:
        """The newest link of a window, after a warm start below it; each with why it is stale."""

        def work(rows: Connection, line: int | None) -> list[tuple[Link, str | None]]:
            newest = link_rows.link_of(rows, line, window)
            if newest is None:
                return []
            found, parent = [newest], newest.parent
            if parent is not None and is_warm_start(parent.window):
                warm = link_rows.link_of(rows, line, parent.window, parent.generation)
                found = [warm, newest] if warm is not None else found
            return [(each, staleness.stale_reason(rows, line, each)) for each in found]

        return self._read(work)

    def published(self) -> Published | None:
        row = self._read(serving.pointer_of)
        if row is None:
            return None
        return Published(
            window=row.key,
            generation=row.generation,
            step=row.step,
            integer=row.integer,
            pinned=row.pinned,
            stored=file_rows.stored_in(row),
            path=store_of(self.home).url(file_rows.stored_in(row)),
            published_at=from_us(row.published_at),
        )

    def publish(self, link: Link, now: datetime, why: str = "") -> str:
        """Let a link with a SavedModel serve, or return why it may not, see `candidate`."""

        def work(rows: Connection, line: int) -> str:
            reason = serving.unfit_to_serve(rows, line, link)
            if not reason:
                model = link.model
                serving.serve(rows, line, model, "publish", now, why)
            return reason

        return self._change(work)

    def publish_inside(self, export: InnerExport, parent: Parent | None, why: str = "") -> str:
        """Let the model of a window that goes on serve, or return why it may not.

        Raises:
            FencedError: when another job trains the line by now.
            InfrastructureError: when its plan was forgotten meanwhile.
        """
        name = Parent(window=export.window, generation=export.generation)
        reason = ""

        def work(rows: Connection, line: int) -> list[str]:
            nonlocal reason
            of_window = line_rows.planned_window(rows, self.pipeline, name)
            reason = serving.unfit_inside(rows, line, export, parent)
            if reason:
                return [export.stored.name]
            export_rows.store(rows, line, of_window, export)
            serving.serve(rows, line, export.model, "publish", export.exported_at, why)
            return export_rows.forget_old(rows, line)

        self._train_and_remove(work)
        return reason

    def withdraw(self, window: str, now: datetime, after: int = 0) -> bool:
        """A window continues from a step: no model that was exported inside it after that serves.

        Returns whether there were any. after: 0 where the window starts over.
        """
        if not any(each.window == window and each.step > after for each in self.exports()):
            return False
        why = f"window {window} " + (f"continues from step {after}" if after else "starts over")

        def work(rows: Connection, line: int) -> list[str]:
            found = export_rows.of_line(rows, line)
            gone = [each for each in found if each.window == window and each.step > after]
            return serving.withdraw(rows, line, gone, now, why)

        self._train_and_remove(work)
        return True

    def serve(
        self,
        name: ServedModel,
        action: Action,
        now: datetime,
        why: str = "",
        exported: Mapping[FileKind, Stored] | None = None,
    ) -> None:
        """Let any model that is kept serve, pinned, see `serving.serve`."""
        self._change(lambda rows, line: serving.serve(rows, line, name, action, now, why, exported))

    def pause(self, asked_by: str, why: str, seconds: float | None = None) -> None:
        """Ask those who follow the line's streams to stop, see `pause_rows.ask`."""
        self._change(lambda rows, line: pause_rows.ask(rows, line, asked_by, why, seconds))

    def is_paused(self) -> bool:
        """Whether people have paused it."""
        return any(each.asked_by == pause_rows.BY_PEOPLE for each in self.pauses())

    def resume(self, asked_by: str) -> bool:
        """Take that back; whether it was asked."""
        return self._change(lambda rows, line: pause_rows.take_back(rows, line, asked_by))

    def unpin(self, why: str = "") -> bool:
        return self._change(lambda rows, line: serving.unpin(rows, line, why))

    def raise_integer(self, integer: int) -> None:
        self._change(lambda rows, line: serving.raise_integer(rows, line, integer))

    def begin_anew(self, *, forget_plans: bool) -> None:
        """Remove every link: the line's next window begins it. What serves, and borders, stay.

        The bytes that nothing names then are left to `forebay gc`.

        forget_plans: all windows are planned again too.
        """

        def work(rows: Connection, line: int) -> None:
            link_writer.remove_links(rows, line)
            export_rows.forget_all(rows, line)
            for window in plan_rows.planned_windows(rows, self.pipeline, self.line):
                if forget_plans and plan_rows.forget(rows, self.pipeline, self.line, window):
                    facts = {"line": self.line}
                    history.note(rows, self.pipeline, window, "forgotten", facts)

        self._change(work)

    def is_begun(self) -> bool:
        """Whether a window was trained: a warm start alone binds nobody to where it ended."""
        return self.trained_until() is not None

    def trained_until(self) -> datetime | None:
        """The end of the last window that was trained; None where the line is not begun."""
        newest = self.last()
        return newest[0].end if newest and not is_warm_start(newest[0].window) else None

    def candidate(self, window: str, generation: int) -> tuple[Link, str] | None:
        """A link, and why it may not serve: an empty text when it may. None without a link."""

        def work(rows: Connection, line: int | None) -> tuple[Link, str] | None:
            link = link_rows.link_of(rows, line, window, generation)
            return None if link is None else (link, serving.unfit_to_serve(rows, line, link))

        return self._read(work)

    def judge(self, link: Link, judgement: Judgement) -> None:
        self.judge_all([(link.name, judgement)])

    def judge_all(self, judged: Sequence[tuple[Parent, Judgement]]) -> None:
        """Store judgements of links, in place of the ones before."""

        def work(rows: Connection, line: int) -> None:
            for name, judgement in judged:
                judgement_rows.store(
                    rows, line, name, judgement.model_dump_json(exclude={"series"})
                )

        self._change(work)

    def judgement(self, link: Link) -> Judgement | None:
        """The judgement of a link; None where it has not been judged."""
        return self.judgements([link]).get(link.window)

    def add_file(self, link: Link, kind: FileKind, stored: Stored) -> Link:
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
            _LOG.warning("an older seal or model was not removed: %s. forebay gc removes it", error)

    def _read(self, work: Callable[[Connection, int | None], T]) -> T:
        """Call `work` with the line's id, which is None before anything is stored for it."""
        return database_of(self.home).read(
            lambda rows: work(rows, line_rows.line_id(rows, self.pipeline, self.line))
        )

    def _train(self, work: Callable[[Connection, int], T]) -> T:
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


def _is_outdone(export: InnerExport, link: Link) -> bool:
    """Whether a new link leaves the model of a window that had not ended without its beginning."""
    if export.window == link.window:
        return export.generation != link.generation
    return (export.end, export.start) > (link.end, link.start)
