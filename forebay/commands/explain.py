"""`forebay explain PIPELINE`: the resolved pipeline and the first windows it would run."""

from __future__ import annotations

from typing import Annotated

import typer

from forebay.commands.output import (
    DEFAULT_CONFIG,
    ConfigDir,
    Form,
    Output,
    OutputFormat,
    instant,
    note,
    option,
)
from forebay.config.explain import feature_rows, first_windows, stream_rows, window_rows
from forebay.config.load import load_project
from forebay.config.pipelines import PipelineSpec

_STREAM_COLUMNS = ("stream", "source", "kind", "feed", "offset", "weight", "floor")
_FEATURE_COLUMNS = ("feature", "encode", "columns", "types", "cardinality", "dimension")
_WINDOW_COLUMNS = ("window", "source", "data_from", "data_to", "reason")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("explain")(explain)


def explain(
    pipeline: Annotated[str, typer.Argument(help="Name of a pipeline.", metavar="PIPELINE")],
    config: ConfigDir = DEFAULT_CONFIG,
    windows: Annotated[int, option("--windows", help="How many windows to show.", min=1)] = 3,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Show a pipeline as it will run.

    Feeds, offsets and weights, features with their sizes, and the first windows.
    """
    project = load_project(config)
    spec = project.pipeline(pipeline)
    sources = {name: project.source(name) for name in spec.source_names}
    streams, features = stream_rows(spec, sources), feature_rows(spec, sources)
    spans = window_rows(spec, sources, first_windows(spec, windows))
    printer = Output(output)
    if printer.is_json:
        printer.json(
            {
                "pipeline": spec.name,
                "paradigms": spec.train.paradigms,
                "streams": streams,
                "features": features,
                "windows": spans,
                "declaration": spec.model_dump(mode="json"),
            }
        )
    else:
        _head(printer, spec)
        printer.line()
        printer.table(streams, _STREAM_COLUMNS)
        printer.line()
        printer.table(features, _FEATURE_COLUMNS)
        printer.line()
        printer.table(spans, _WINDOW_COLUMNS)
    for problem in project.problems:
        if problem.severity == "note" and problem.file == project.pipeline_files[pipeline].file:
            note(str(problem))


def _head(printer: Output, spec: PipelineSpec) -> None:
    dataset, train, job = spec.dataset, spec.train, spec.job
    end = f" to {instant(dataset.end)}" if dataset.end else ", no end"
    compared = f", compared with {', '.join(train.compare)}" if train.compare else ""
    label = dataset.label
    rules = {
        "is": label.positive,
        "above": label.greater_than,
        "below": label.less_than,
    }
    rule = " ".join(f"{word} {value}" for word, value in rules.items() if value is not None)
    printer.line(f"pipeline   {spec.name}" + (f": {spec.description}" if spec.description else ""))
    printer.line(
        f"windows    {dataset.window.value} ({dataset.timezone}) from {instant(dataset.start)}{end}"
    )
    printer.line(f"event      {', '.join(dataset.event_id_columns)}")
    printer.line(f"label      {label.column} {rule}".rstrip())
    printer.line(
        f"learns     {train.paradigm}{compared}; minibatches of {train.minibatch_rows} rows"
    )
    printer.line(
        f"runs       {job.plane}: {job.roles.data.count} data, {job.roles.trainer.count} trainer; "
        f"checkpoint every {job.checkpoint.every_steps} steps; publish {job.publish.when}"
    )
