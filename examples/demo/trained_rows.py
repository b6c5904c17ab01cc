"""Rows, metrics and pace of windows, from the files that their jobs write."""

from __future__ import annotations

from dataclasses import dataclass, field

from forebay.config.specs.windows import is_warm_start
from forebay.executors.job.measures import Progress
from forebay.executors.job.stored_jobs import StoredJob, jobs_of
from forebay.executors.model_line.chain import ModelChain
from forebay.home.paths import Home


def running_jobs(home: Home, pipeline: str) -> list[tuple[StoredJob, Progress]]:
    """Jobs whose trainer has started, each with its newest progress."""
    found = [(job, job.progress) for job in jobs_of(home, pipeline, unended=True)]
    return [
        (job, progress)
        for job, progress in found
        if job.row.state == "running" and progress is not None
    ]


@dataclass(frozen=True)
class Trained:
    """What is currently known about one window.

    auc: on labels as known when the rows were published. note: its pace, while it is trained.
    """

    rows: dict[str, int] = field(default_factory=dict)
    auc: float | None = None
    note: str = ""


class TrainedRows:
    """Reads the model chain and jobs of one line; a judged window is read only once."""

    def __init__(self, home: Home, pipeline: str, line: str, paradigm: str) -> None:
        """`paradigm` is the one whose AUC is shown."""
        self._home = home
        self._pipeline = pipeline
        self._chain = ModelChain(home, pipeline, line)
        self._paradigm = paradigm
        self._done: dict[str, Trained] = {}

    def of(self, window: str) -> Trained:
        """A window's rows from its model once there is one, from its job until then."""
        if window not in self._done:
            found = self._judged(window)
            if found.auc is None:
                return found
            self._done[window] = found
        return self._done[window]

    def _judged(self, window: str) -> Trained:
        link = self._chain.newest(window)
        if link is None:
            return self._in_training(window)
        rows = {name: link.trained(name).rows for name in link.seen}
        judgement = self._chain.judgement(link)
        figures = judgement.metrics.get(self._paradigm) if judgement else None
        # On labels as known then: complete ones of a window's rows arrive with later windows.
        return Trained(rows, figures.auc_fresh if figures else None)

    def _in_training(self, window: str) -> Trained:
        for _, progress in running_jobs(self._home, self._pipeline):
            warm = is_warm_start(progress.window) and progress.window.endswith(window)
            if warm or progress.window == window:
                pace = f"{progress.rows_per_second:,.0f} rows/s"
                return Trained(progress.rows, note=f"warm start, {pace}" if warm else pace)
        return Trained()
