"""Where state is stored: one folder, FOREBAY_HOME, with one sub-folder for each kind of state."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT_NAME = "FOREBAY_HOME"
DEFAULT_HOME = ".forebay"
DEFAULT_LINE = "main"


@dataclass(frozen=True)
class Home:
    """Paths below FOREBAY_HOME. Nothing here creates a folder."""

    root: Path

    @classmethod
    def from_environment(cls) -> Home:
        """FOREBAY_HOME, or `.forebay` in the current folder, as an absolute path."""
        return cls(Path(os.environ.get(ENVIRONMENT_NAME) or DEFAULT_HOME).absolute())

    def lines(self, pipeline: str) -> Path:
        """What this host trains of a pipeline: one folder for each model line."""
        return self.root / "training" / pipeline

    def line(self, pipeline: str, line: str = DEFAULT_LINE) -> Path:
        """What this host trains of a line: its lease, and one folder for each window in work."""
        return self.lines(pipeline) / line

    def model(self, pipeline: str, line: str, window: str, generation: int) -> Path:
        """What is kept of a window while it is trained: checkpoints, scores, steps, dead letters.

        It is removed once the window's link is stored.
        """
        return self.line(pipeline, line) / window / f"g{generation}"

    @property
    def store(self) -> Path:
        """What is big and never changes, unless FOREBAY_STORE names another place."""
        return self.root / "store"

    @property
    def cache(self) -> Path:
        """Copies of what is kept elsewhere, on this host alone: they may go at any time."""
        return self.root / "cache"

    @property
    def jobs(self) -> Path:
        """All jobs' folders."""
        return self.root / "jobs"

    def job(self, job_id: str) -> Path:
        """Request, token, progress, journal, sockets and logs of one job."""
        return self.jobs / job_id
