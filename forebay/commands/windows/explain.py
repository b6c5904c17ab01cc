"""`forebay explain PIPELINE`: the pipeline as it will run, or what a backfill would cost."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from forebay.commands.shared import arguments
from forebay.commands.shared.live_line import working
from forebay.commands.shared.output import Form, Output, OutputFormat, instant, note, option
from forebay.config.declared import as_written
from forebay.config.explain import feature_rows, first_windows, stream_rows, window_rows
from forebay.config.specs.base import duration_words
from forebay.config.specs.labels import LabelSpec
from forebay.config.specs.pipelines import PipelineSpec
from forebay.errors import ConfigError, UsageError
from forebay.system.clock import utc_now
from forebay.system.output.counted import counted

if TYPE_CHECKING:
    from forebay.executors.backfill_cost import BackfillCost
    from forebay.executors.stages.target import LineTarget

_STREAM_COLUMNS = ("stream", "source", "kind", "feed", "offset", "weight", "floor")
_FEATURE_COLUMNS = ("feature", "encode", "columns", "types", "cardinality", "dimension")
_WINDOW_COLUMNS = ("window", "source", "data_from", "data_to", "reason")


def explain(
    pipeline: arguments.PipelineName,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    windows: Annotated[int, option("--windows", help="How many windows to show.", min=1)] = 3,
    first: Annotated[
        str, option("--from", help="First window of a backfill: show what it will cost.")
    ] = "",
    last: Annotated[str, option("--to", help="Its last window, included.")] = "",
    reprocess: Annotated[
        bool, option("--reprocess", help="Count as if all windows were trained again.")
    ] = False,
    line: arguments.LineName = arguments.DEFAULT_LINE,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Show what a pipeline runs, or what a backfill costs.

    With --from and --to it shows what that backfill will do and how long it will take.

    For a pipeline: feeds, offsets and weights, features with their sizes, the first windows. For a
    backfill: what happens to each window, rows by source, storage calls, time.
    The storage is read as in planning, but nothing is recorded.
    """
    from forebay.executors.model_line.start import require_compatible
    from forebay.executors.stages.target import LineTarget

    printer, target = Output(output), LineTarget.load(config, pipeline, line)
    try:
        require_compatible(target.chain, target.pipeline, target.project.sources)
    except ConfigError as error:  # the line cannot continue as declared
        note(str(error))
    if first or last or reprocess:
        _backfill(printer, target, first, last, reprocess=reprocess)
    else:
        _declaration(printer, target, windows)


def _declaration(printer: Output, target: LineTarget, windows: int) -> None:
    spec, project = target.pipeline, target.project
    sources = {name: project.source(name) for name in spec.source_names}
    streams, features = stream_rows(spec, sources), feature_rows(spec, sources)
    spans = window_rows(spec, sources, first_windows(spec, windows))
    written = project.pipeline_files[spec.name].document.written
    if printer.is_json:
        printer.json(
            {
                "pipeline": spec.name,
                "paradigms": spec.train.paradigms,
                "streams": streams,
                "features": features,
                "windows": spans,
                "declaration": as_written(spec.model_dump(mode="json"), written),
            }
        )
    else:
        _head(printer, spec)
        shown = {_STREAM_COLUMNS: streams, _FEATURE_COLUMNS: features, _WINDOW_COLUMNS: spans}
        for columns, rows in shown.items():
            printer.line()
            printer.table(rows, columns)
    for problem in project.problems:
        if problem.severity == "note" and problem.file == project.pipeline_files[spec.name].file:
            note(str(problem))


def _head(printer: Output, spec: PipelineSpec) -> None:
    dataset, train, job = spec.dataset, spec.train, spec.job
    end = f" to {instant(dataset.end)}" if dataset.end else ", no end"
    names = train.paradigms
    compared = f", compared with {', '.join(names[1:])}" if names[1:] else ""
    printer.line(f"pipeline   {spec.name}" + (f": {spec.description}" if spec.description else ""))
    printer.line(
        f"windows    {dataset.window.value} ({dataset.timezone}) from {instant(dataset.start)}{end}"
    )
    printer.line(f"event      {', '.join(dataset.event_id_columns)}")
    for name, label in dataset.targets.items():
        printer.line(_label_line(name, label))
    printer.line(f"learns     {names[0]}{compared}; minibatches of {train.minibatch_rows:,} rows")
    printer.line(
        f"runs       {job.plane}: {job.roles.data.count} data, {job.roles.trainer.count} trainer; "
        f"checkpoint every {job.checkpoint.every_steps} steps; publish {job.publish.when}"
    )


def _label_line(name: str, label: LabelSpec) -> str:
    rules = {"is": label.positive, "above": label.greater_than, "below": label.less_than}
    rule = " ".join(f"{word} {value}" for word, value in rules.items() if value is not None)
    weight = f"; weight {label.share_of_loss:g}" if label.share_of_loss != 1 else ""
    correction = "" if label.correction is None else f"; delay {label.correction}"
    named = f"{name}: " if name else ""
    return f"label      {named}{label.column} {rule}".rstrip() + correction + weight


def _backfill(
    printer: Output, target: LineTarget, first: str, last: str, *, reprocess: bool
) -> None:
    with working(f"looking at what pipeline {target.pipeline.name} would read"):
        from forebay.datatasks.window_range import asked_range
        from forebay.executors.backfill_cost import backfill_cost

        if not first:
            raise UsageError("a backfill begins somewhere: write --from")
        windows = asked_range(target.pipeline, first, last, None, utc_now())
        cost = backfill_cost(target, windows, utc_now, reprocess=reprocess)
    if printer.is_json:
        printer.json(cost.model_dump())
        return
    columns = ["window", "does", *(f"{name} rows" for name in cost.rows)]
    if any(each.reason for each in cost.windows):
        columns.append("reason")
    rows = [
        each.model_dump() | {f"{name} rows": count for name, count in each.rows.items()}
        for each in cost.windows
    ]
    printer.table(rows, columns, below=("reason",))
    printer.line()
    for text in _totals(cost):
        printer.line(text)


def _totals(cost: BackfillCost) -> list[str]:
    trained = cost.named("train", "train again")
    rows = ", ".join(f"{name} {_count(count)}" for name, count in cost.rows.items())
    known = [count for count in cost.rows.values() if count is not None]
    total = f"{sum(known):,}" if len(known) == len(cost.rows) else f"{sum(known):,} and unknown"
    lines = [
        f"total    {len(trained)} of {len(cost.windows)} windows to train, {total} rows ({rows})",
        f"planning {counted(cost.storage_calls, 'storage call')}; this estimate made as many",
    ]
    ways = {
        "skipped  {}: trained; --reprocess trains them again": cost.named("skip"),
        "waiting  {}: not counted above": cost.named("wait"),
        "changed  {}: their data has changed; --reprocess trains on it": cost.changed,
    }
    lines += [text.format(_keys(keys)) for text, keys in ways.items() if keys]
    return [*lines, f"time     {_time(cost)}"]


def _time(cost: BackfillCost) -> str:
    pace = cost.pace
    if cost.seconds is None:
        return "unknown: how many rows a topic has is only known once a window is trained"
    if not cost.named("train", "train again"):
        return "none: nothing to train"
    measured = "defaults, as line {} has trained nothing yet"
    if pace.windows:
        measured = f"measured on line {{}}: {counted(pace.windows, 'window')}"
    return (
        f"about {_seconds(cost.seconds)}: {_seconds(pace.job_seconds)} to start a job, and "
        f"{_seconds(1_000 * pace.row_seconds)} for each 1,000 rows ({measured.format(cost.line)})"
    )


def _seconds(value: float) -> str:
    return duration_words(timedelta(seconds=value))


def _count(count: int | None) -> str:
    return "unknown before reading" if count is None else f"{count:,}"


def _keys(keys: list[str]) -> str:
    return keys[0] if len(keys) == 1 else f"{keys[0]} to {keys[-1]} ({len(keys)})"
