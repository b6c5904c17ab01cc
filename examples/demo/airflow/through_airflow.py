"""Through Airflow: one run for each window, created by a backfill and shown while they run."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from examples.demo.airflow.backfill import Backfill
from examples.demo.airflow.live import Shown
from examples.demo.mode import Json, say
from examples.demo.next_steps import backfill_link, down_command, up_command
from examples.demo.settings import FIRST_WINDOW, LAST_WINDOW, PIPELINE, Settings
from examples.demo.signals import wait_for_ctrl_c
from examples.demo.trained_rows import TrainedRows
from forebay.commands.shared.output import terminal_width
from forebay.config.load import load_project
from forebay.datatasks.window_range import parse_range
from forebay.embedded.airflow.cluster import Embedded
from forebay.embedded.airflow.http import Endpoint
from forebay.embedded.airflow.rest import AirflowApi
from forebay.errors import RowsLostError
from forebay.executors.evaluation.range_summary import summarise_windows
from forebay.executors.evaluation.run_summary import Summary
from forebay.executors.model_line.chain import ModelChain
from forebay.home.paths import DEFAULT_LINE
from forebay.report.text import report_lines
from forebay.system.files.durable import write_atomically

START_SECONDS = 240.0


class ThroughAirflow:
    """An embedded Airflow for as long as the demo runs; one that was already running stays.

    environ: what its tasks get. deadline: when all windows must be done, in monotonic seconds.
    """

    def __init__(
        self, settings: Settings, config: Path, environ: Mapping[str, str], deadline: float
    ) -> None:
        self._settings = settings
        self._config = config.absolute()
        self._deadline = deadline
        self._embedded = Embedded(settings.home, [self._config])
        state = self._embedded.state()
        self.ends_airflow = state is None or state.state != "running"  # else it was already running
        self.stays = self.ends_airflow and sys.stdout.isatty()
        self._environ = environ
        self._endpoint: Endpoint | None = None
        self._phases: dict[str, float] = {}

    def train(self, between: Callable[[], None]) -> Json:
        began = time.monotonic()
        os.environ.update(self._environ)  # Airflow's processes inherit this one's
        self._endpoint = endpoint = self._embedded.start(
            START_SECONDS, lambda doing: say(f"airflow  starting: {doing}") if doing else None
        )
        say(f"airflow  {endpoint.url}  user {endpoint.user}  password {endpoint.password}")
        started = time.monotonic()
        self._phases["airflow"] = started - began
        spec = load_project(self._config).pipeline(PIPELINE)
        windows = parse_range(spec, FIRST_WINDOW, LAST_WINDOW)
        keys = [window.key for window in windows]
        chain = ModelChain(self._settings.home, PIPELINE, DEFAULT_LINE)
        before = set(chain.windows())
        paradigm = spec.train.paradigms[0]
        rows = TrainedRows(self._settings.home, PIPELINE, DEFAULT_LINE, paradigm)
        with Shown(paradigm) as shown:
            backfill = Backfill(
                AirflowApi(endpoint), PIPELINE, spec.dataset.grid, windows, rows, shown.say, between
            )
            backfill.await_dag()
            backfill.create()
            backfill.follow(shown, self._deadline)
        followed = time.monotonic()
        self._phases["backfill"] = followed - started
        summary = summarise_windows(spec, chain, keys)
        self._phases["evaluate"] = time.monotonic() - followed
        return self._finish(summary, [key for key in keys if key not in before])

    def _finish(self, found: Summary, trained: list[str]) -> Json:
        """Add what only this call knows to the summary, then write and print it."""
        own = {name: round(seconds, 3) for name, seconds in self._phases.items()}
        reused = [one.window for one in found.windows if one.window not in trained]
        more = {"trained_windows": trained, "reused_windows": reused}
        phases = {"phases_seconds": own | found.phases_seconds}
        summary = found.model_copy(update=more | phases)
        say(f"windows  {len(found.windows) - len(reused)} trained, {len(reused)} reused")
        document = summary.document()
        write_atomically(self._settings.summary, json.dumps(document, indent=1) + "\n")
        if not summary.rows_agree:
            raise RowsLostError(summary.rows_line)
        for line in report_lines(summary, terminal_width()):
            say(line)
        say(f"summary  {self._settings.summary}")
        return document

    def tell(self) -> None:
        """Print the page with the backfill form, and how to start Airflow again if it stops."""
        if self._endpoint is None:
            return
        say(f"next  backfill more windows: {backfill_link(self._endpoint.url, PIPELINE)}")
        if self.ends_airflow and not self.stays:
            say(f"next  start Airflow for it: {up_command(self._settings.home.root, self._config)}")

    def linger(self) -> None:
        if self._endpoint is not None:
            one = self._endpoint
            say(f"airflow  {one.url}  user {one.user}  password {one.password}")
            say("Airflow stays up until Ctrl-C")
            wait_for_ctrl_c()

    def stop(self) -> None:
        if not self.ends_airflow:
            down = down_command(self._settings.home.root)
            say(f"airflow  it was already running and stays up; to stop it: {down}")
        elif self._embedded.state() is not None:
            say("airflow  stopping")
            self._embedded.stop()
