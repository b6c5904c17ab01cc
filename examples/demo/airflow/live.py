"""Shows windows while they run: a block that changes on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Self

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from examples.demo.airflow.window_view import WindowView

LINES_EVERY_SECONDS = 3.0
# The longest word for what a window is doing, and a number of rows.
_WIDEST = len("waits its turn")
_NUMBER = len("999,999")
_COLOURS = {"done": "green", "failed": "bold red", "to come": "dim", "queued": "dim"}


class Shown:
    """Shows what has changed since the last call; a context manager for while windows run."""

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

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print a line above the changing block."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def show(self, views: Sequence[WindowView], footer: str, *, last: bool = False) -> None:
        """Show the newest states. `last`: this is the final call, so nothing is left out."""
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
    """What makes a line worth printing again if it changes; rows only while they are trained."""
    return f"{view.doing} {view.auc} {view.rows if view.note else ''}"


def _table(views: Sequence[WindowView], metric: str) -> Table:
    """One row for each window. On a narrow terminal the list of tasks at work is truncated."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=0)
    names = list(dict.fromkeys(name for view in views for name in view.rows))
    table.add_column("window", no_wrap=True, min_width=max(len(view.window) for view in views))
    table.add_column("", no_wrap=True, min_width=_WIDEST)
    table.add_column("tasks", justify="right", no_wrap=True, min_width=5)
    table.add_column("at work", overflow="ellipsis")
    for title in (*names, f"fresh_AUC_{metric}"):
        lines = title.replace("_", "\n")
        width = max(_NUMBER, *(len(line) for line in lines.splitlines()))
        table.add_column(lines, justify="right", no_wrap=True, min_width=width)
    for view in views:
        table.add_row(
            Text(view.window),
            Text(view.doing, style=_COLOURS.get(view.doing, "yellow")),
            Text(view.ended),
            Text(view.at_work, no_wrap=True, overflow="ellipsis"),
            *(Text(f"{view.rows[name]:,}" if name in view.rows else "") for name in names),
            Text("" if view.auc is None else f"{view.auc:.3f}"),
        )
    return table
