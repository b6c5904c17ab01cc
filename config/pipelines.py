"""PipelineSpec: a dataset, a model and how they run."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from forebay.config.base import Instant, Spec
from forebay.config.datasets import DatasetSpec
from forebay.config.jobs import JobSpec
from forebay.config.models import ModelSpec, Paradigm
from forebay.config.schedules import ScheduleSpec

Accepted = Literal["incomplete_labels", "no_positives"]


class TrainSpec(Spec):
    """Which paradigms learn, from when, in minibatches of how many rows.

    `compare` trains further paradigms beside the first in the same process on the same
    minibatches in the same order. `warm_start` replays history from that instant to the
    pipeline's first window as one span before the first window.
    """

    paradigm: Paradigm = "mixture"
    compare: tuple[Paradigm, ...] = ()
    minibatch_rows: int = Field(default=512, ge=1, le=65536)
    warm_start: Instant | None = None
    accept: tuple[Accepted, ...] = Field(
        default=(),
        description="What `forebay check --connect` finds in the data and you mean to train on: "
        "then it is a note and no error, and runs do not warn. incomplete_labels: a stream that "
        "knows less than 0.9 of its positives when it publishes them, and no correction. "
        "no_positives: no sampled row is positive",
    )

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        if len(set(self.paradigms)) != len(self.paradigms):
            raise ValueError("paradigm and compare name one paradigm twice")
        return self

    @property
    def paradigms(self) -> list[Paradigm]:
        """The serving paradigm first, then those trained beside it."""
        return [self.paradigm, *self.compare]


class PipelineSpec(Spec):
    """One pipeline: `config/pipelines/NAME.yaml`. The file's name is the pipeline's name."""

    name: str = Field(exclude=True, json_schema_extra={"from_file_name": True})
    description: str = ""
    dataset: DatasetSpec
    model: ModelSpec = ModelSpec()
    train: TrainSpec = TrainSpec()
    job: JobSpec = JobSpec()
    schedule: ScheduleSpec = ScheduleSpec()

    @property
    def source_names(self) -> list[str]:
        """Sources in declared order; their index is the source index in rows and row sums."""
        streams = self.dataset.streams.values()
        return list(dict.fromkeys(name for stream in streams for name in stream.sources))
