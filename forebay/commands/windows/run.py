"""`forebay run`: train the windows of a range, show progress, write the summary."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.commands.shared import arguments
from forebay.commands.shared.live_line import LiveLine
from forebay.commands.shared.output import (
    INTERRUPTED,
    Form,
    Output,
    OutputFormat,
    is_terminal,
    note,
    option,
    terminal_width,
)
from forebay.commands.shared.own_home import closed_home
from forebay.errors import UsageError
from forebay.system.output.counted import counted
from forebay.system.output.redaction import redacted

if TYPE_CHECKING:
    from forebay.datatasks.planning.planner import PlanReport
    from forebay.datatasks.plans.plan import WindowPlan
    from forebay.errors import InfrastructureError
    from forebay.executors.evaluation.run_summary import Summary
    from forebay.executors.job.measures import Progress
    from forebay.executors.job.request import JobStatus
    from forebay.executors.model_line.link import Link
    from forebay.executors.run import Watch
    from forebay.executors.stages.target import LineTarget


class OnStale(StrEnum):
    REFUSE = "refuse"
    TRAIN = "train"


def run(
    pipeline: arguments.PipelineName,
    first: arguments.FirstWindow = "",
    last: arguments.LastWindow = "",
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    summary: Annotated[
        Path | None, option("--summary", help="Write a summary of the run here, as JSON.")
    ] = None,
    reprocess: Annotated[
        bool, option("--reprocess", help="Read and train these windows again.")
    ] = False,
    on_stale: Annotated[
        OnStale,
        option("--on-stale", help="What to do where a window would start from a stale model."),
    ] = OnStale.REFUSE,
    follow: Annotated[
        bool,
        option(
            "--follow",
            "-f",
            help="Train what is due, then the window that goes on now while its streams grow, and "
            "so on until Ctrl-C (`job.process: continuous`).",
        ),
    ] = False,
    line: arguments.LineName = arguments.DEFAULT_LINE,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Train the windows of a range that are not trained yet.

    Without --from and --to, all that is due: from the window after the last trained one to the
    newest that has ended. Without --to, up to that one.

    Each window continues the model of the previous window. Ctrl-C ends only this command: the job
    continues in the background, and the same command follows it again. On the plane `inline` it
    ends the job too, and the same command continues from its newest checkpoint.
    """
    stream = sys.stderr if output is OutputFormat.JSON else sys.stdout
    live = is_terminal() and stream is sys.stdout
    line_option = [] if line == arguments.DEFAULT_LINE else ["--line", line]
    cancel = join(["forebay", "cancel", pipeline, *line_option])
    with LiveLine(stream, live=live) as shown:
        seen = _Seen(shown, cancel)
        try:
            if follow:
                if first or last or reprocess or summary is not None:
                    raise UsageError(
                        "--follow trains what is due and what comes: it takes no --from, --to, "
                        "--reprocess or --summary"
                    )
                _follow(seen, config, pipeline, line)
                return
            found = _run(
                seen, config, pipeline, line, first, last, reprocess=reprocess, on_stale=on_stale
            )
        except KeyboardInterrupt:
            shown.interrupted()
            seen.interrupted()
            raise typer.Exit(INTERRUPTED) from None
    if summary is not None:
        from forebay.system.files.durable import make_folder, writing

        make_folder(summary.parent)
        with writing(summary):
            summary.write_text(redacted(json.dumps(found.document(), indent=1)) + "\n")
    _print(Output(output), found, summary)


def _run(
    seen: _Seen,
    config: Path,
    pipeline: str,
    line: str,
    first: str,
    last: str,
    *,
    reprocess: bool,
    on_stale: OnStale,
) -> Summary:
    from forebay.executors.run import Run

    target, watch = _prepared(seen, config, pipeline, line)
    return Run(target, watch).execute(first, last, reprocess=reprocess, on_stale=on_stale.value)


def _follow(seen: _Seen, config: Path, pipeline: str, line: str) -> None:
    first, watch = _prepared(seen, config, pipeline, line)
    from forebay.executors.follow import Follow
    from forebay.executors.stages.target import LineTarget

    read = iter([first])

    def declared() -> LineTarget:
        return next(read, None) or LineTarget.load(config, pipeline, line)

    Follow(declared, watch, seen.trained).execute()


def _prepared(seen: _Seen, config: Path, pipeline: str, line: str) -> tuple[LineTarget, Watch]:
    """Late imports take seconds, so a line says first what is happening."""
    seen.shown.doing(f"reading pipeline {pipeline}")
    from forebay.executors.arrow_start import start_arrow
    from forebay.executors.run import Watch
    from forebay.executors.stages.target import LineTarget

    target = LineTarget.load(config, pipeline, line)
    closed_home(target.home)
    start_arrow(target.kinds)
    return target, Watch(
        doing=seen.shown.doing,
        warned=seen.warned,
        waiting=seen.shown.say,
        planned=seen.planned,
        submitted=seen.submitted,
        progress=seen.progress,
        away=seen.away,
        ending=seen.ending,
    )


class _Seen:
    def __init__(self, shown: LiveLine, cancel: str) -> None:
        """cancel: the command that ends the job."""
        self.shown = shown
        self._cancel = cancel
        self._away = ""
        self._job_id = ""
        self._is_over = self._is_ending = False

    def warned(self, text: str) -> None:
        self.shown.say(f"WARNING: {text}")

    def planned(self, report: PlanReport, todo: Sequence[WindowPlan]) -> None:
        reused = len(report.plans) - len(todo)
        self.shown.say(
            f"planned {counted(len(report.plans), 'window')} with "
            f"{counted(report.storage_calls, 'storage call')}; "
            f"{len(todo)} to train, {reused} reused (trained before)"
        )
        for text in report.notes:
            self.shown.say(f"note: {text}")

    def submitted(self, job_id: str) -> None:
        self._job_id = job_id
        self.shown.say(f"job   {job_id}")
        self.shown.say(f"logs  forebay jobs logs -f {job_id}")

    def progress(self, progress: Progress, status: JobStatus) -> None:
        self._is_over = status.ended
        text = _progress_text(progress, sum(status.restarts.values()), self.shown.width)
        self.shown.figures(text)

    def trained(self, link: Link) -> None:
        rows = ", ".join(f"{link.trained(use).rows:,} rows of {use}" for use in link.seen)
        self.shown.say(f"window {link.window} is trained: {rows}")

    def away(self, error: InfrastructureError) -> None:
        text = f"the job continues, but its state cannot be read: {error}"
        if text != self._away:
            self.shown.say(text)
        self._away = text

    def ending(self, job_id: str) -> None:
        self._is_ending = True
        self.shown.doing(f"ending job {job_id}, which runs in this process")

    def interrupted(self) -> None:
        if not self._job_id:
            note("interrupted: no job was started; the same command starts again")
        elif self._is_over:
            note(f"interrupted: job {self._job_id} has ended; the same command shows its results")
        elif self._is_ending:
            note(f"interrupted: job {self._job_id} ran in this process and ends with it")
            note("to continue from its newest checkpoint: run the same command again")
        else:
            note(f"interrupted: job {self._job_id} continues in the background")
            note("to follow it: run the same command again")
            note(f"its logs:     forebay jobs logs -f {self._job_id}")
            note(f"to end it:    {self._cancel}")
            note("              (a later run continues from its newest checkpoint)")


def _lag(progress: Progress) -> str:
    """Of a window that goes on, by its streams; of any other, the time of data that is left."""
    return f"lag {progress.lag_words or f'{progress.lag_seconds / 3600:.0f}h'}"


def _progress_text(progress: Progress, restarts: int, width: int | None) -> str:
    """One line, with rows by source if they fit, else with as much as fits."""
    parts = [
        f"{progress.windows_done}/{progress.windows_total} windows",
        progress.window,
        f"step {progress.step:,}",
        "  ".join(f"{name} {count:,}" for name, count in progress.rows.items()),
        f"{progress.rows_per_second:,.0f} rows/s",
        _lag(progress),
        *([f"restarts {restarts}"] if restarts else []),
    ]
    if width is not None and len("  ".join(parts)) > width:
        parts[3] = f"{sum(progress.rows.values()):,} rows"
        while len("  ".join(parts)) > width and len(parts) > 1:
            parts.pop(3 if len(parts) > 3 else -1)
    return "  ".join(part for part in parts if part)


def _print(output: Output, found: Summary, summary: Path | None) -> None:
    if output.is_json:
        output.json(found.document())
        return
    from forebay.report.text import report_lines

    output.line()
    for text in report_lines(found, terminal_width()):
        output.exact(text)
    if summary is not None:
        command = join(["forebay", "report", str(summary)])
        output.line(f"summary  {summary}  (`{command}` makes an HTML page of it)")
