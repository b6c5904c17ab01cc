"""Where state is stored: one folder, FOREBAY_HOME, with one sub-folder for each kind of state."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from forebay.system.names import require_job_id, require_name, require_window_key

ENVIRONMENT_NAME = "FOREBAY_HOME"
DEFAULT_HOME = ".forebay"
DEFAULT_LINE = "main"


@dataclass(frozen=True)
class Home:
    """Paths below FOREBAY_HOME. Nothing here creates a folder.

    alone: everything is in this folder, its database and store too, whatever FOREBAY_DATABASE and
    FOREBAY_STORE name.

    The parts of a path are checked: every method raises UsageError for invalid names, windows and
    job ids.
    """

    root: Path
    alone: bool = False

    @classmethod
    def from_environment(cls) -> Home:
        """FOREBAY_HOME, or `.forebay` in the current folder, as an absolute path."""
        given = Path(os.environ.get(ENVIRONMENT_NAME) or DEFAULT_HOME)
        return cls(given.expanduser().absolute())  # a file that set it left `~` as it is

    @property
    def training(self) -> Path:
        """What this host trains: one folder for each pipeline."""
        return self.root / "training"

    def lines(self, pipeline: str) -> Path:
        """What this host trains of a pipeline: one folder for each model line."""
        return self.training / require_name("pipeline", pipeline)

    def line(self, pipeline: str, line: str = DEFAULT_LINE) -> Path:
        """What this host trains of a line: its lease, and one folder per window in training."""
        return self.lines(pipeline) / require_name("line", line)

    def model(self, pipeline: str, line: str, window: str, generation: int) -> Path:
        """What is kept for a window while it is trained: checkpoints, scores, steps, dead letters.

        It is removed once the window's link is stored.
        """
        return self.line(pipeline, line) / require_window_key(window) / f"g{generation:d}"

    @property
    def store(self) -> Path:
        """Large data that never changes; not used when FOREBAY_STORE names another place."""
        return self.root / "store"

    @property
    def cache(self) -> Path:
        """This host's copies of what is kept elsewhere: they may be deleted at any time."""
        return self.root / "cache"

    @property
    def stages(self) -> Path:
        """Where processes of this host listen that run stages for Airflow's tasks."""
        return self.root / "stages"

    @property
    def runners(self) -> Path:
        """Where supervisors of this host listen that stay: one folder for each line."""
        return self.root / "runners"

    def runner(self, pipeline: str, line: str) -> Path:
        return self.runners / require_name("pipeline", pipeline) / require_name("line", line)

    @property
    def jobs(self) -> Path:
        return self.root / "jobs"

    def job(self, job_id: str) -> Path:
        """Request, token, progress, journal, sockets and logs of one job."""
        return self.jobs / require_job_id(job_id)
