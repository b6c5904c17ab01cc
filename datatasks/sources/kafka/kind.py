"""Kind `kafka` as declarations see it."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar, Literal

from pydantic import Field

from forebay.config.base import Duration, Spec
from forebay.config.registry import SourceKind
from forebay.datatasks.sources.common.option_types import Scalar, Text


class KafkaKind(SourceKind):
    """A Kafka topic."""

    name: ClassVar[str] = "kafka"
    bounded: ClassVar[bool] = False
    source: ClassVar[str] = "forebay.datatasks.sources.kafka.source:KafkaSource"

    class Options(Spec):
        """One Kafka topic. Rows are cut by the timestamp of their record."""

        bootstrap: Text = Field(description="Brokers: host:port, several separated by commas")
        topic: Text
        format: Literal["arrow-ipc", "json"] = Field(
            default="arrow-ipc",
            description="arrow-ipc: a micro-batch in each message; json: one row",
        )
        close_delay: Duration = Field(
            default=timedelta(minutes=1),
            description="How long after a window's end its last records may still arrive",
        )
        timestamp_jump_max: Duration = Field(
            default=timedelta(hours=1),
            description="How far ahead of the records around it a record's time may be",
        )
        client: dict[str, Scalar] = Field(
            default_factory=dict,
            description="Further options of the Kafka client (security, timeouts)",
        )
