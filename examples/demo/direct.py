"""One `forebay run` over all windows of a pipeline, as a user would type it."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from examples.demo.mode import Json, say
from examples.demo.settings import Windows
from forebay.errors import error_of
from forebay.executors.job.stored_jobs import jobs_of
from forebay.executors.job.submit import attach
from forebay.home.paths import Home

_POLL_SECONDS = 0.1
_CANCEL_SECONDS = 30.0


@dataclass
class Direct:
    """`forebay run` in its own process; its output goes to the user.

    `ThroughAirflow` has the same methods. `stop` is always called, even after an interrupt.
    """

    home: Home
    windows: Windows
    config: Path
    environ: Mapping[str, str]
    _process: subprocess.Popen[bytes] | None = None

    stays = False  # whether it runs until the user ends it, for whom `linger` waits
    ends_airflow = False  # whether `stop` stops Airflow

    def train(self, between: Callable[[], None]) -> Json:
        """Train the windows that are not trained yet; print and return the summary of all.

        `between` is called many times a second meanwhile.

        Raises:
            ForebayError: when a window could not be trained.
        """
        pipeline, first, last, summary = self.windows
        summary.unlink(missing_ok=True)
        arguments = ["run", pipeline, "--from", first, "--to", last]
        arguments += ["--config", str(self.config), "--summary", str(summary)]
        say(f"$ forebay {shlex.join(arguments)}")
        command = [sys.executable, "-P", "-m", "forebay.cli", *arguments]
        self._process = subprocess.Popen(command, env=dict(self.environ))
        while self._process.poll() is None:
            time.sleep(_POLL_SECONDS)
            between()
        if self._process.returncode != 0:
            code = self._process.returncode
            raise error_of(code, f"forebay run ended with exit code {code}")
        found: Json = json.loads(summary.read_text())
        return found

    def tell(self) -> None:
        """Nothing to add to the report."""

    def linger(self) -> None:
        """Nothing stays running."""

    def stop(self) -> None:
        """End the command, and its job, which would continue without the command."""
        process = self._process
        if process is None or process.poll() == 0:
            return
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_CANCEL_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for job in jobs_of(self.home, self.windows.pipeline, unended=True):
            handle = attach(self.home, job.job_id)
            handle.cancel()
            handle.wait(_CANCEL_SECONDS)
