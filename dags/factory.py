"""From a pipeline's YAML to its DAG: one run for each window, one task for each stage."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Param, TaskGroup

from forebay.config.load import load_one
from forebay.config.role_environment import declared_variables
from forebay.config.specs.base import format_duration
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.config.yaml.problem_text import problems_text
from forebay.config.yaml.problems import errors
from forebay.errors import ConfigError
from forebay.operators.runs import task_ids
from forebay.operators.runs.stage_request import REPROCESS
from forebay.operators.stages.data_executors import DataExecutorsOperator
from forebay.operators.stages.evaluate import EvaluateOperator
from forebay.operators.stages.publish import PublishOperator
from forebay.operators.stages.sink import SinkOperator
from forebay.operators.stages.source import SourceOperator
from forebay.operators.stages.timer import TimerOperator
from forebay.operators.stages.training_executors import TrainingExecutorsOperator
from forebay.operators.timetable import WindowTimetable
from forebay.system.output.redaction import redacted

_INSTANT = timedelta(microseconds=1)
# Added to our own deadlines, so that these end a task first and say why.
_TIMEOUT_MARGIN = timedelta(minutes=5)


def pipeline(name: str, config: str | Path) -> DAG:
    """The DAG of one pipeline, from its own YAML and that of its sources, and no other files.

    config: folder with `sources/` and `pipelines/`.

    Raises:
        ConfigError: with the text of `forebay check` about this pipeline and its sources.
    """
    config_dir = Path(config)
    project = load_one(config_dir, name)
    wrong = errors(project.problems)
    if wrong:
        raise ConfigError(redacted(problems_text(wrong))) from None
    spec = project.pipeline(name)
    sources = {source: project.sources[source] for source in spec.source_names}
    planning: dict[str, Any] = {  # the arguments that all tasks of a pipeline share
        "pipeline": spec.name,
        "config": str(config_dir.absolute()),
        "size": spec.dataset.window,
        "timezone": spec.dataset.timezone,
        "python": spec.job.roles.data.runtime.python,
        "grace_seconds": spec.schedule.grace.total_seconds(),
        "stage_seconds": spec.schedule.plan_timeout.total_seconds(),
        "execution_timeout": spec.schedule.plan_timeout + _TIMEOUT_MARGIN,
        "variables": declared_variables(spec.job, project.variables(name)),
    }
    return _dag(spec, sources, planning, config_dir)


def _dag(
    spec: PipelineSpec,
    sources: Mapping[str, SourceSpec],
    planning: dict[str, Any],
    config_dir: Path,
) -> DAG:
    dataset, schedule = spec.dataset, spec.schedule
    with DAG(
        dag_id=spec.name,
        description=spec.description or None,
        doc_md=markdown(spec, sources, config_dir),
        schedule=WindowTimetable(
            dataset.window,
            dataset.timezone,
            dataset.grid.at(dataset.start).start,
            # The latest start is inclusive, a dataset's end is not.
            None if dataset.end is None else dataset.end - _INSTANT,
        ),
        catchup=schedule.catchup,
        max_active_runs=schedule.active_runs_max,
        params={
            REPROCESS: Param(
                default=False,
                type="boolean",
                title="Train again even if trained",
                description="Plan and train the window even if it is already trained",
            )
        },
        default_args={
            "start_date": None,  # which Airflow demands for catchup; the timetable has it
            "owner": schedule.owner,
            "pool": schedule.pool,
            "retries": schedule.retries,
            "retry_delay": schedule.retry_delay,
        },
        tags=sorted({"forebay", *schedule.tags}),
    ) as dag:
        _chain(spec, sources, planning)
    return dag


def _chain(spec: PipelineSpec, sources: Mapping[str, SourceSpec], planning: dict[str, Any]) -> None:
    """All tasks of the current DAG, one after the other; sources in parallel."""
    job = planning | {"turn_wait_seconds": spec.schedule.turn_wait.total_seconds()}
    train_seconds = spec.schedule.train_timeout.total_seconds()
    timer = TimerOperator(task_id=task_ids.TIMER, **planning)
    with TaskGroup(task_ids.SOURCES, tooltip="Which data tasks each source has for the window"):
        listings = [
            SourceOperator(
                task_id=task_ids.source_label(use.name),
                source=use.name,
                windows_around=spec.dataset.plan_ahead_windows,
                doc_md=sources[use.source].description or None,
                **planning,
            )
            for use in spec.uses
        ]
    # Nothing but a place where all sources have answered: the scheduler ends it, without a process.
    joiner = EmptyOperator(task_id=task_ids.JOINER)
    sink = SinkOperator(task_id=task_ids.SINK, **planning)
    data = DataExecutorsOperator(
        task_id=task_ids.DATA_EXECUTORS,
        executors=spec.job.roles.data.count,
        # Windows train in turn: of those that are planned, the earliest waits for its own, and the
        # scheduler starts none in vain. One that waits for more than training leaves the place.
        max_active_tis_per_dag=1,
        **job,
    )
    training = TrainingExecutorsOperator(
        task_id=task_ids.TRAINING_EXECUTORS,
        train_seconds=train_seconds,
        **job | {"execution_timeout": timedelta(seconds=train_seconds) + _TIMEOUT_MARGIN},
    )
    evaluate = EvaluateOperator(task_id=task_ids.EVALUATE, **planning)
    publish = PublishOperator(task_id=task_ids.PUBLISH, **planning)
    timer >> listings >> joiner >> sink >> data >> training >> evaluate >> publish


def markdown(spec: PipelineSpec, sources: Mapping[str, SourceSpec], config_dir: Path) -> str:
    dataset = spec.dataset
    zone = "" if dataset.timezone == "UTC" else f" of {dataset.timezone}"
    until = "on" if dataset.end is None else f"until {dataset.end:%Y-%m-%dT%H:%MZ}"
    runs = (
        f"Each run processes one window ({dataset.window}{zone}), "
        f"from {dataset.grid.at(dataset.start).key} {until}. "
        f"Model line `main`, paradigm `{spec.train.paradigms[0]}`."
    )
    rows = [
        f"| {name} | {sources[name].kind} | {stream} | {format_duration(declared.offset)} |"
        for stream, declared in dataset.streams.items()
        for name in declared.sources
    ]
    parts = [
        spec.description or f"Pipeline `{spec.name}`.",
        runs,
        "\n".join(["| source | kind | stream | offset |", "|---|---|---|---|", *rows]),
        f"Declared in `{config_dir.absolute() / 'pipelines' / spec.name}.yaml`.",
    ]
    return "\n\n".join(parts) + "\n"
