"""`forebay stage NAME PIPELINE WINDOW`: one stage of one window, as Airflow's tasks call it.

Standard output is one line of JSON, a model of `forebay.executors.stages.results`; what people
read goes to standard error.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forebay.commands.output import (
    DEFAULT_CONFIG,
    DEFAULT_LINE,
    ConfigDir,
    LineName,
    note,
    option,
)
from forebay.config.load import Project, load_project
from forebay.config.pipelines import PipelineSpec
from forebay.config.registry import kind_named
from forebay.config.windows import Window
from forebay.errors import UsageError
from forebay.home.paths import Home
from forebay.system.message import Message

if TYPE_CHECKING:
    from forebay.executors.stages.results import RequestedWindow

PipelineName = Annotated[str, typer.Argument(help="The pipeline's name.")]
WindowKey = Annotated[str, typer.Argument(help="For example 2026-03-01 or 2026-03-01T07.")]
AskedBy = Annotated[str, option("--asked-by", help="The pass of the run: its id and clear number.")]
Again = Annotated[bool, option("--again", help="Do a trained window again.")]


def register(app: typer.Typer) -> None:
    """Add the command and its stages."""
    stages = typer.Typer(
        name="stage",
        help="Do one stage of one window, as Airflow's tasks do; prints a line of JSON.",
        no_args_is_help=True,
    )
    for stage in (timer, source, sink, submit, evaluate, publish):
        stages.command(stage.__name__)(stage)
    app.add_typer(stages)


@dataclass(frozen=True)
class _Place:
    """What every stage begins with."""

    project: Project
    pipeline: PipelineSpec
    window: Window
    home: Home

    @classmethod
    def of(cls, config: Path, pipeline: str, window: str) -> _Place:
        from forebay.datatasks.window_range import requested_window

        project = load_project(config)
        spec = project.pipeline(pipeline)
        return cls(project, spec, requested_window(spec, window), Home.from_environment())


def timer(
    pipeline: PipelineName,
    window: WindowKey,
    again: Again = False,
    config: ConfigDir = DEFAULT_CONFIG,
    line: LineName = DEFAULT_LINE,
) -> None:
    """Say whether the window has to be done."""
    from forebay.executors.stages.plan import time_window

    place = _Place.of(config, pipeline, window)
    result = time_window(place.pipeline, place.home, line, place.window, again=again)
    _print(result, f"window {result.window}: {result.reason}")
    if result.next:
        note(f"next: {result.next}")


def source(
    pipeline: PipelineName,
    window: WindowKey,
    source: Annotated[str, typer.Argument(help="The source's name.")],
    asked_by: AskedBy,
    asked: Annotated[
        str, option("--asked", help="JSON list of other windows that wait for a plan now.")
    ] = "[]",
    ready: Annotated[
        bool, option("--ready", help="Only look whether the data is complete.")
    ] = False,
    config: ConfigDir = DEFAULT_CONFIG,
    line: LineName = DEFAULT_LINE,
) -> None:
    """List the data tasks of one source, in one scan with other windows that wait for theirs."""
    from forebay.executors.role import start_arrow
    from forebay.executors.stages.source import SourceStage

    place = _Place.of(config, pipeline, window)
    if kind_named(place.project.source(source).kind).__module__.startswith("forebay."):
        start_arrow()  # another's kind may hand pandas' values to Arrow
    stage = SourceStage(
        place.project, place.pipeline, source, place.home, line, lambda: datetime.now(UTC)
    )
    act = stage.is_ready if ready else stage.list_window
    result = act(place.window, asked_by, _asked(asked))
    rows = "an unknown number of" if result.rows is None else f"{result.rows:,}"
    found = f"{rows} rows in {result.tasks:,} tasks ({result.storage_calls} storage calls now)"
    if result.state == "waiting":
        told = f"waiting: {result.reason}"
    elif ready:
        told = "complete"
    else:
        told = f"{found}{f': {result.reason}' if result.reason else ''}"
    _print(result, f"window {result.window}, source {source}: {told}")


def sink(
    pipeline: PipelineName,
    window: WindowKey,
    asked_by: AskedBy,
    again: Again = False,
    config: ConfigDir = DEFAULT_CONFIG,
    line: LineName = DEFAULT_LINE,
) -> None:
    """Record the window's plan from what its sources have listed."""
    from forebay.executors.role import start_arrow
    from forebay.executors.stages.plan import record_window

    start_arrow()
    place = _Place.of(config, pipeline, window)
    result = record_window(
        place.project,
        place.pipeline,
        place.home,
        line,
        place.window,
        asked_by=asked_by,
        again=again,
    )
    did = "recorded" if result.recorded else "kept"
    _print(result, f"window {result.window}: generation {result.generation} is {did}")
    for text in result.notes:
        note(f"note: {text}")


def submit(
    pipeline: PipelineName,
    window: WindowKey,
    claim: Annotated[str, option("--claim", help="Whoever comes with the same text re-attaches.")],
    previous: Annotated[
        str, option("--previous", help="The run of the window before: none, active, done, failed.")
    ],
    again: Again = False,
    config: ConfigDir = DEFAULT_CONFIG,
    line: LineName = DEFAULT_LINE,
) -> None:
    """Submit the job that trains the window, or attach to it, once it is the window's turn."""
    from forebay.executors.stages.submit import submit_window
    from forebay.executors.stages.turn import PreviousRun

    if previous not in set(PreviousRun):
        raise UsageError(f"--previous is one of {', '.join(PreviousRun)}, not {previous!r}")
    place = _Place.of(config, pipeline, window)
    result = submit_window(
        place.project,
        place.pipeline,
        place.home,
        line,
        place.window,
        claim=claim,
        again=again,
        previous=PreviousRun(previous),
    )
    _print(result, f"window {result.window}: {result.state} {result.reason or result.job_id}")


def evaluate(
    pipeline: PipelineName,
    window: WindowKey,
    config: ConfigDir = DEFAULT_CONFIG,
    line: LineName = DEFAULT_LINE,
) -> None:
    """Compare planned, served and trained rows of the window, and measure its models."""
    from forebay.executors.stages.evaluate import evaluate_window

    place = _Place.of(config, pipeline, window)
    result = evaluate_window(place.project, place.pipeline, place.home, line, place.window.key)
    _print(result, f"window {result.window}: {result.rows_line}")


def publish(
    pipeline: PipelineName,
    window: WindowKey,
    generation: Annotated[int, option("--generation", help="Of the window.", min=1)],
    config: ConfigDir = DEFAULT_CONFIG,
    line: LineName = DEFAULT_LINE,
) -> None:
    """Let the window's model serve, if the pipeline says so and no later one does."""
    from forebay.executors.stages.publish import publish_window

    place = _Place.of(config, pipeline, window)
    result = publish_window(place.pipeline, place.home, line, place.window.key, generation)
    _print(result, f"window {result.window}: {result.state} {result.reason}".rstrip())


def _asked(text: str) -> list[RequestedWindow]:
    from pydantic import TypeAdapter, ValidationError

    from forebay.executors.stages.results import RequestedWindow

    try:
        return TypeAdapter(list[RequestedWindow]).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(
            f"--asked is a JSON list of {{window, asked_by}}: {first['loc']}: {first['msg']}"
        ) from None


def _print(result: Message, told: str) -> None:
    note(told)
    sys.stdout.write(result.model_dump_json() + "\n")
