"""`forebay stage NAME PIPELINE WINDOW`: one stage of one window, as Airflow's tasks call it.

Standard output is one line of JSON, a model of `forebay.executors.stages.results`; messages for
people go to standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.commands.shared import arguments
from forebay.commands.shared.output import note, option
from forebay.commands.shared.own_home import closed_home
from forebay.config.specs.datasets import source_of
from forebay.errors import ConfigError, UsageError
from forebay.system.clock import utc_now
from forebay.system.instants import INSTANT_FORMAT
from forebay.system.message import Message
from forebay.system.names import shown
from forebay.system.output.counted import counted

if TYPE_CHECKING:
    from forebay.executors.stages.results import EvaluateResult, RequestedWindow
    from forebay.executors.stages.target import StageTarget

AskedBy = Annotated[
    str,
    option(
        "--asked-by",
        help="The run that asks, and how often it was cleared: DAG/RUN_ID#0.",
        callback=arguments.one_line,
    ),
]
Again = Annotated[bool, option("--again", help="Train a trained window again.")]
group = typer.Typer(help="Run one stage of a window, as Airflow tasks do.", no_args_is_help=True)


@group.command()
def timer(
    pipeline: arguments.PipelineName,
    window: arguments.WindowKey,
    again: Again = False,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
) -> None:
    """Say whether the window needs to be trained."""
    from forebay.executors.stages.plan import time_window

    result = time_window(_target(config, pipeline, line, window), again=again)
    _print(result, f"window {result.window}: {result.reason}")
    if result.next:
        note(f"next: {result.next}")


@group.command()
def source(
    pipeline: arguments.PipelineName,
    window: arguments.WindowKey,
    source: arguments.UseName,
    asked_by: AskedBy,
    waiting: Annotated[
        str, option("--asked", help="JSON list of other windows that are waiting for a plan.")
    ] = "[]",
    since: Annotated[
        datetime | None,
        option("--since", help="Ignore listings older than this.", formats=[INSTANT_FORMAT]),
    ] = None,
    ready: Annotated[
        bool, option("--ready", help="Only check whether the data is complete.")
    ] = False,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
) -> None:
    """List the data tasks of one source.

    The same scan also lists those of other waiting windows.
    """
    from forebay.executors.arrow_start import start_arrow
    from forebay.executors.stages.source import SourceStage

    target = _target(config, pipeline, line, window)
    start_arrow([target.project.source(source_of(source)).kind])
    made = None if since is None else since.replace(tzinfo=UTC)
    stage = SourceStage(target, source, utc_now, made)
    act = stage.is_ready if ready else stage.list_window
    result = act(asked_by, _requested_windows(waiting))
    rows = "an unknown number of rows" if result.rows is None else counted(result.rows, "row")
    calls = counted(result.storage_calls, "storage call")
    found = f"{rows} in {counted(result.tasks, 'task')} ({calls} now)"
    if result.state == "waiting":
        state = f"waiting: {result.reason}"
    elif ready:
        state = "complete"
    else:
        state = f"{found}{f': {result.reason}' if result.reason else ''}"
    _print(result, f"window {result.window}, source {source}: {state}")


@group.command()
def sink(
    pipeline: arguments.PipelineName,
    window: arguments.WindowKey,
    asked_by: AskedBy,
    again: Again = False,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
) -> None:
    """Record the plan that the window's sources have listed."""
    from forebay.executors.arrow_start import start_arrow
    from forebay.executors.stages.plan import record_window

    start_arrow()
    target = _target(config, pipeline, line, window)
    result = record_window(target, asked_by=asked_by, again=again)
    did = "recorded" if result.recorded else "kept"
    for text in result.notes:
        note(f"note: {text}")
    _print(result, f"window {result.window}: generation {result.generation} is {did}")


@group.command()
def submit(
    pipeline: arguments.PipelineName,
    window: arguments.WindowKey,
    claim: Annotated[
        str,
        option(
            "--claim",
            help="A call with the same text attaches to the same job.",
            callback=arguments.one_line,
        ),
    ],
    previous: Annotated[
        str, option("--previous", help="Run of the previous window: none, active, done, failed.")
    ],
    again: Again = False,
    run: Annotated[
        str | None,
        option("--run", help="The scheduler's run that owns the job.", callback=arguments.one_line),
    ] = None,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
) -> None:
    """Submit the job that trains the window.

    It attaches to a job that is already running; before the window's turn it says what it is
    waiting for.
    """
    from forebay.executors.stages.submit import submit_window
    from forebay.executors.stages.turn import PreviousRun

    if previous not in set(PreviousRun):
        raise UsageError(
            f"--previous must be one of {', '.join(PreviousRun)}, not {shown(previous)}"
        )
    target = _target(config, pipeline, line, window)
    before = PreviousRun(previous)
    result = submit_window(target, claim=claim, again=again, previous=before, run=run)
    for text in result.warnings:
        note(f"WARNING: {text}")
    _print(result, f"window {result.window}: {result.state} {result.reason or result.job_id}")


@group.command()
def evaluate(
    pipeline: arguments.PipelineName,
    window: arguments.WindowKey,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
) -> None:
    """Compare rows of the window, and measure its models.

    Planned, served and trained rows must agree.
    """
    from forebay.executors.arrow_start import start_arrow
    from forebay.executors.stages.evaluate import evaluate_window

    start_arrow()
    result = evaluate_window(_target(config, pipeline, line, window))
    span = ["--from", window, "--to", window, *arguments.place_options(config, line)]
    lines = [*_rows_left_out(result), result.rows_line, *result.words]
    for text in result.warnings:
        note(f"WARNING: pipeline {pipeline}: {text}")
    note(f"intervals and plots: {join(['forebay', 'report', pipeline, *span])}")
    for text in lines[:-1]:
        note(text)
    _print(result, lines[-1])


@group.command()
def publish(
    pipeline: arguments.PipelineName,
    window: arguments.WindowKey,
    generation: Annotated[int, option("--generation", help="Generation of the window.", min=1)],
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
) -> None:
    """Let the window's model serve.

    Only if the pipeline allows it and no later window's model serves.
    """
    from forebay.executors.stages.publish import publish_window

    result = publish_window(_target(config, pipeline, line, window), generation)
    _print(result, f"window {result.window}: {result.state} {result.reason}".rstrip())


def _rows_left_out(result: EvaluateResult) -> Iterator[str]:
    late = "not trained on because the label was not known in time"
    for source, rows in result.label_not_known.items():
        yield f"source {source}: {counted(rows, 'row')} {late}"
    for label, sources in result.labels_not_known.items():
        late = f"not trained on for label {label}, null or not known in time"
        for source, rows in sources.items():
            yield f"source {source}: {counted(rows, 'row')} {late}"


def _target(config: Path, pipeline: str, line: str, window: str) -> StageTarget:
    from forebay.datatasks.window_range import parse_window
    from forebay.executors.stages.target import LineTarget

    target = LineTarget.load(config, pipeline, line)
    closed_home(target.home)
    try:
        return target.at(parse_window(target.pipeline, window))
    except ConfigError as error:
        file, row, column = target.project.where("pipelines", pipeline, ("dataset",))
        raise ConfigError(f"{file}:{row}:{column}: {error}") from error


def _requested_windows(text: str) -> list[RequestedWindow]:
    from pydantic import TypeAdapter, ValidationError

    from forebay.executors.stages.results import RequestedWindow

    try:
        return TypeAdapter(list[RequestedWindow]).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(
            f"--asked must be a JSON list of {{window, asked_by}}: {first['loc']}: {first['msg']}"
        ) from None


def _print(result: Message, text: str) -> None:
    note(text)
    sys.stdout.write(result.model_dump_json() + "\n")
