"""ScheduleSpec: how Airflow runs a pipeline, one run for each window."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from forebay.config.base import Duration, Spec


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
        default=timedelta(seconds=10),
        description="Time between two attempts",
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
        default="default_pool",
        description="Airflow pool that limits the tasks of this pipeline",
    )
    owner: Annotated[str, StringConstraints(min_length=1, max_length=500)] = Field(
        default="forebay",
        description="Owner shown in Airflow",
    )
    tags: list[Annotated[str, StringConstraints(min_length=1, max_length=100)]] = Field(
        default_factory=list,
        max_length=100,
        description="Tags of the DAG in Airflow",
    )

    @field_validator("plan_timeout", "train_timeout")
    @classmethod
    def _some_time(cls, value: timedelta) -> timedelta:
        if value < timedelta(seconds=1):
            raise ValueError("no stage can finish in so little time: write at least 1s")
        return value
