"""Shows windows while they run: a block that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from forebay.demo.window_view import WindowView

LINES_EVERY_SECONDS = 3.0
_COLOURS = {"done": "green", "failed": "bold red", "to come": "dim", "queued": "dim"}


class Shown:
    """Tells what changed since it was asked last; entered for as long as windows run."""

    def __init__(self, metric: str, console: Console | None = None) -> None:
        """`metric` is the paradigm whose AUC is shown."""
        self._metric = metric
        self._console = console or Console()
        self._live: Live | None = None
        self._said: dict[str, str] = {}
        self._said_at = -LINES_EVERY_SECONDS

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live = Live(console=self._console, auto_refresh=False, transient=False)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """A line between what changes."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show(self, views: Sequence[WindowView], footer: str, *, last: bool = False) -> None:
        """Show the newest states. `last`: nothing comes behind it, so nothing is left out."""
        if self._live is not None:
            self._live.update(Group(_table(views, self._metric), Text(footer)), refresh=True)
            return
        now = time.monotonic()
        if not last and now - self._said_at < LINES_EVERY_SECONDS:
            return
        self._said_at = now
        changed = [view for view in views if self._said.get(view.window) != _mark(view)]
        for view in changed:
            self._said[view.window] = _mark(view)
            if view.run:
                self.say(view.line(self._metric))


def _mark(view: WindowView) -> str:
    """What makes a line worth saying again; rows alone do only while they come in."""
    return f"{view.doing} {view.auc} {view.rows if view.note else ''}"


def _table(views: Sequence[WindowView], metric: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    columns: list[tuple[str, Callable[[WindowView], Text]]] = [
        ("window", lambda view: Text(view.window)),
        ("", lambda view: Text(view.doing, style=_COLOURS.get(view.doing, "yellow"))),
        ("Airflow's tasks", lambda view: Text(view.task_states)),
    ]
    names = list(dict.fromkeys(name for view in views for name in view.rows))
    for title, _ in columns:
        table.add_column(title, no_wrap=True)
    for title in (*names, f"fresh AUC {metric}"):
        table.add_column(title, justify="right", no_wrap=True)
    for view in views:
        cells = [cell(view) for _, cell in columns]
        rows = [Text(f"{view.rows[name]:,}" if name in view.rows else "") for name in names]
        auc = Text("" if view.auc is None else f"{view.auc:.3f}")
        table.add_row(*cells, *rows, auc)
    return table
