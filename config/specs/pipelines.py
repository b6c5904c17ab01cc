"""PipelineSpec: a dataset, a model and how they run."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, StringConstraints, field_validator, model_validator

from forebay.config.specs.base import Duration, Instant, Spec
from forebay.config.specs.datasets import DatasetSpec, SourceUse, source_uses
from forebay.config.specs.jobs import JobSpec
from forebay.config.specs.models import VARIANTS, Delay, ModelSpec, Paradigm, Variant


class ScheduleSpec(Spec):
    """When windows run automatically, and how long their tasks wait and retry.

    The dataset defines its windows (window, timezone, start, end).
    """

    catchup: bool = Field(
        default=False, description="Run every closed window since the start, not only the newest"
    )
    active_runs_max: int = Field(
        default=16, ge=1, le=10_000, description="Most runs that plan and wait at the same time"
    )
    grace: Duration = Field(
        default=timedelta(seconds=60),
        description="How long a task waits in its worker, holding its slot, before it defers",
    )
    retries: int = Field(
        default=3, ge=2, le=1_000, description="Retries after infrastructure failures"
    )
    retry_delay: Duration = Field(
        default=timedelta(seconds=10), description="Time between two attempts"
    )
    turn_wait: Duration = Field(
        default=timedelta(hours=24), description="Longest wait for the previous window"
    )
    on_stale: Literal["train", "refuse"] = Field(
        default="train",
        description="What a run in Airflow does where the model that it starts from is stale: "
        "`train`, with a warning, or `refuse`",
    )
    plan_timeout: Duration = Field(
        default=timedelta(hours=1), description="Longest time that one planning stage may take"
    )
    train_timeout: Duration = Field(
        default=timedelta(hours=24), description="Longest time that training one window may take"
    )
    # The limit of Airflow's database: with more, its scheduler would fail for all pipelines.
    pool: Annotated[str, StringConstraints(min_length=1, max_length=256)] = Field(
        default="default_pool", description="Airflow pool that limits the tasks of this pipeline"
    )
    owner: Annotated[str, StringConstraints(min_length=1, max_length=500)] = Field(
        default="forebay", description="Owner shown in Airflow"
    )
    tags: list[Annotated[str, StringConstraints(min_length=1, max_length=100)]] = Field(
        default_factory=list, max_length=100, description="Tags of the DAG in Airflow"
    )

    @field_validator("plan_timeout", "train_timeout")
    @classmethod
    def _some_time(cls, value: timedelta) -> timedelta:
        if value < timedelta(seconds=1):
            raise ValueError("no stage can finish in so little time: write at least 1s")
        return value


__all__ = ["ComparedSpec", "PipelineSpec", "TrainSpec"]

Accepted = Literal["incomplete_labels", "no_positives", "no_negatives"]


class ComparedSpec(Spec):
    """A paradigm that is trained alongside the declared one, and its correction of late labels."""

    paradigm: Paradigm = Field(description="What to train alongside the declared paradigm")
    delay: Delay = Field(default="none", description="How it corrects late labels")


def _spelled_out(value: object) -> object:
    """Reject a variant given by the name of its scores, saying what to write instead."""
    named = VARIANTS.get(value) if isinstance(value, str) else None
    if named is not None and named.delay != "none":
        raise ValueError(
            f"{value!r} is the name of its scores: write "
            f"{{paradigm: {named.paradigm}, delay: {named.delay}}}"
        )
    return value


Compared = Annotated[Paradigm | ComparedSpec, BeforeValidator(_spelled_out)]
AUTO: Literal["auto"] = "auto"


def _settled_later(value: object) -> object:
    """Whoever reads a project's files puts variants in place of `auto` (`config.checks.rivals`)."""
    return () if value == AUTO else value


class TrainSpec(Spec):
    """Which paradigms are trained, from when, in minibatches of how many rows.

    `compare` trains further paradigms alongside the first, in the same process on the same
    minibatches in the same order; `auto` chooses them when a line begins. `warm_start` replays
    history from that instant to the pipeline's first window as one span before the first window.
    delay: how `paradigm` corrects late stream labels. seeds: how many models of each paradigm are
    trained side by side, with seeds counted up from model.seed; the first one serves. guard: pause
    training on a stream whose labels stop arriving, judged by what a tower trained on batch rows
    expects.
    """

    paradigm: Paradigm = Field(
        default="mixture",
        description="What serves: `batch` or `stream` rows alone, `batch_then_stream` (batch in "
        "the warm start, stream afterwards), `mixed` (both in one tower), or `mixture` (a memory "
        "tower and an adapt tower). By default `batch` or `stream` where all streams feed that one",
    )
    delay: Delay = Field(
        default="none",
        description="How the paradigm corrects late stream labels: not at all, with a delay "
        "`head` that estimates what share of labels is known, or by `fnw` (late positives from "
        "batch rows)",
    )
    compare: Annotated[
        tuple[Compared, ...],
        BeforeValidator(
            _settled_later, json_schema_input_type=Literal["auto"] | tuple[Compared, ...]
        ),
    ] = Field(
        default=(),
        description="Further paradigms, trained in the same process on the same minibatches in "
        "the same order: a list of names, or of mappings with `paradigm` and `delay`. `auto`: up "
        "to three that suit the streams and the machine's memory, chosen when a line begins; its "
        "later windows train the same",
    )
    seeds: int = Field(
        default=1,
        ge=1,
        le=16,
        description="Number of models of each paradigm that are trained side by side, with seeds "
        "counted up from `model.seed`. The first one serves; three or more give intervals that "
        "include training noise",
    )
    guard: bool = Field(
        default=True,
        description="Pause training on a stream whose labels stop arriving, judged by what a "
        "tower trained on batch rows expects",
    )
    minibatch_rows: int = Field(
        default=512, ge=1, le=65536, description="Rows of one training step"
    )
    warm_start: Instant | None = Field(
        default=None, description="Before the first window, train on history from this instant on"
    )
    accept: tuple[Accepted, ...] = Field(
        default=(),
        description="Findings of `forebay check --connect` that are intended: they become notes "
        "instead of errors, and runs do not warn. incomplete_labels: less than 0.9 of a stream's "
        "positives are known when it publishes them, and nothing corrects that. no_positives, "
        "no_negatives: no sampled row is positive, or none is negative",
    )

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len(set(self.paradigms)) != len(self.paradigms):
            raise ValueError("paradigm and compare name the same paradigm twice")
        return self

    @property
    def variants(self) -> list[Variant]:
        """What is trained: first the one that serves, then the compared ones."""
        others = [
            Variant(each.paradigm, each.delay) if isinstance(each, ComparedSpec) else Variant(each)
            for each in self.compare
        ]
        return [Variant(self.paradigm, self.delay), *others]

    @property
    def paradigms(self) -> list[str]:
        return [each.name for each in self.variants]


class PipelineSpec(Spec):
    """One pipeline: `config/pipelines/NAME.yaml`. The file's name is the pipeline's name."""

    name: str = Field(exclude=True, json_schema_extra={"from_file_name": True})
    description: str = Field(default="", description="Free text for people")
    dataset: DatasetSpec = Field(
        description="Which rows are read, and how they become features and labels"
    )
    model: ModelSpec = Field(default=ModelSpec(), description="What the model is made of")
    train: TrainSpec = Field(default=TrainSpec(), description="How the model is trained")
    job: JobSpec = Field(default=JobSpec(), description="How the processes run")
    schedule: ScheduleSpec = Field(
        default=ScheduleSpec(), description="When Airflow runs the pipeline"
    )

    @property
    def source_names(self) -> list[str]:
        """Each source that a stream reads once, in declared order."""
        return list(dict.fromkeys(use.source for use in self.uses))

    @property
    def uses(self) -> list[SourceUse]:
        """Sources as streams read them; their index is the source index in rows and row sums."""
        streams = self.dataset.streams.items()
        return source_uses({name: stream.sources for name, stream in streams})

    @property
    def use_names(self) -> list[str]:
        return [use.name for use in self.uses]
