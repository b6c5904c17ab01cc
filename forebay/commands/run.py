"""`forebay run`: train the windows of a range, show how it goes, write the summary."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forebay.commands import arguments
from forebay.commands.output import Form, Output, OutputFormat, is_terminal, option
from forebay.commands.own_home import closed_home
from forebay.system.redaction import redacted
from forebay.system.terminal import printable

if TYPE_CHECKING:
    from forebay.datatasks.planning import PlanReport
    from forebay.datatasks.plans import WindowPlan
    from forebay.errors import InfrastructureError
    from forebay.executors.job.progress import Progress
    from forebay.executors.job.request import JobStatus

LINE_EVERY_SECONDS = 5.0


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("run")(run)


def run(
    pipeline: arguments.PipelineName,
    first: arguments.FirstWindow,
    last: arguments.LastWindow,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    summary: Annotated[
        Path | None, option("--summary", help="Write the facts of the run here, as JSON.")
    ] = None,
    reprocess: Annotated[
        bool, option("--reprocess", help="Read and train these windows again.")
    ] = False,
    line: arguments.LineName = arguments.DEFAULT_LINE,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Train every window of a range that is not trained yet, each from the one before it."""
    from forebay.executors.arrow_start import start_arrow
    from forebay.executors.run import Run, Watch
    from forebay.executors.stages.target import LineTarget
    from forebay.system.files import make_folder, writing

    target = LineTarget.load(config, pipeline, line)
    closed_home(target.home)
    start_arrow(target.kinds)
    cancel = shlex.join(["forebay", "cancel", pipeline, "--line", line])
    shown = _Shown(sys.stderr if output is OutputFormat.JSON else sys.stdout, cancel)
    watch = Watch(
        warned=shown.warned,
        waiting=shown.waiting,
        planned=shown.planned,
        submitted=shown.submitted,
        progress=shown.progress,
        away=shown.away,
    )
    try:
        facts = Run(target, watch).execute(first, last, reprocess=reprocess)
    except KeyboardInterrupt:
        shown.interrupted()
        raise
    if summary is not None:
        make_folder(summary.parent)
        with writing(summary):
            summary.write_text(redacted(json.dumps(facts, indent=1)) + "\n")
    _print(Output(output), facts, summary)


class _Shown:
    """Live progress: one changing line on a terminal, a plain line every few seconds elsewhere."""

    def __init__(self, stream: Any, cancel: str) -> None:  # noqa: ANN401 - any text stream
        """Nothing is shown yet. cancel: the command that ends the job."""
        self._stream = stream
        self._cancel = cancel
        self._live = is_terminal() and stream is sys.stdout
        self._shown_at = 0.0
        self._text = ""
        self._job_id = ""

    def warned(self, text: str) -> None:
        self._line(f"WARNING: {text}")

    def waiting(self, text: str) -> None:
        self._line(text)

    def planned(self, report: PlanReport, todo: Sequence[WindowPlan]) -> None:
        reused = len(report.plans) - len(todo)
        self._line(
            f"planned {len(report.plans)} windows with {report.storage_calls} storage calls; "
            f"{len(todo)} to train, {reused} reused (trained before)"
        )
        for note in report.notes:
            self._line(f"note: {note}")

    def submitted(self, job_id: str, folder: Path) -> None:
        self._job_id = job_id
        self._line(f"job {job_id}  logs: {folder / 'logs'}")

    def progress(self, progress: Progress, status: JobStatus) -> None:
        rows = "  ".join(f"{name} {count:,}" for name, count in progress.rows.items())
        restarts = sum(status.restarts.values())
        text = (
            f"{progress.windows_done}/{progress.windows_total} windows  {progress.window}  "
            f"step {progress.step:,}  {rows}  {progress.rows_per_second:,.0f} rows/s  "
            f"lag {progress.lag_seconds / 3600:.0f}h"
        ) + (f"  restarts {restarts}" if restarts else "")
        now = time.monotonic()
        if text == self._text:
            return
        if self._live:
            self._stream.write(f"\r\x1b[2K{printable(text[:160])}")
            self._stream.flush()
        elif now - self._shown_at >= LINE_EVERY_SECONDS:
            self._line(text)
            self._shown_at = now
        self._text = text

    def away(self, error: InfrastructureError) -> None:
        text = f"the job goes on, its state cannot be read now: {error}"
        if text != self._text:
            self._line(text)
        self._text = text

    def interrupted(self) -> None:
        """The job does not end with the command that follows it: say so, and how it ends."""
        if self._job_id:
            sys.stderr.write(
                f"\njob {self._job_id} goes on: the same command follows it again, "
                f"`{self._cancel}` ends it\n"
            )

    def _line(self, text: str) -> None:
        self._stream.write(("\r\x1b[2K" if self._live else "") + printable(text) + "\n")
        self._stream.flush()


def _print(output: Output, facts: dict[str, Any], summary: Path | None) -> None:
    if output.is_json:
        output.json(facts)
        return
    from rich.console import Console

    from forebay.report.facts import facts_of
    from forebay.report.text import print_report

    output.line()
    print_report(facts_of(facts), Console())
    if summary is not None:
        output.line(f"summary  {summary}  (forebay report {summary} makes a page of it)")
