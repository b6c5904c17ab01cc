"""`forebay run --follow`: train what is due, then the window that goes on now, and so on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from forebay.config.specs.jobs import CONTINUOUS
from forebay.config.specs.windows import Window
from forebay.datatasks.planning.growth import open_window
from forebay.datatasks.plans.plan import WindowPlan
from forebay.errors import ConfigError
from forebay.executors.model_line.link import Link
from forebay.executors.run import Run, Watch
from forebay.executors.stages.target import LineTarget
from forebay.system.clock import utc_now

WAIT_SECONDS = 1.0


@dataclass
class Follow:
    """Follows the streams of one line. trained: told of each window once it is a link."""

    target: LineTarget
    watch: Watch
    trained: Callable[[Link], None] = lambda _link: None

    def execute(self) -> None:
        """Until the dataset ends, or an error.

        Raises:
            ConfigError: where the pipeline's windows are not to grow.
            ForebayError: as `Run.execute`.
        """
        pipeline = self.target.pipeline
        if pipeline.job.process != CONTINUOUS:
            raise ConfigError(
                f"pipeline {pipeline.name!r} cannot be followed: declare job.process: {CONTINUOUS}"
            )
        while (window := self._next()) is not None:
            link = Run(self.target, self.watch).train_open(window, self._plan)
            self.trained(link)

    def _next(self) -> Window | None:
        """The window that goes on now, once those before it are trained; None after the last."""
        dataset, told = self.target.pipeline.dataset, ""
        while True:
            window = dataset.grid.at(utc_now())
            due = self.target.due_from() or dataset.start
            if dataset.end is not None and window.start >= dataset.end:
                return None
            if due >= window.end:  # the dataset has not begun, or the clock was set back
                if told != window.key:
                    told = window.key
                    self.watch.waiting(f"the next window begins at {due:%Y-%m-%dT%H:%MZ}")
                time.sleep(WAIT_SECONDS)
            elif due >= window.start:
                return window
            else:
                Run(self.target, self.watch).execute("", "")

    def _plan(self, window: Window) -> WindowPlan:
        target = self.target
        return open_window(target.ledger, window, target.pipeline, target.project.sources)
