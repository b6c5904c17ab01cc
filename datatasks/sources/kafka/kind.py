"""Kind `kafka` as declarations see it."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from forebay.config.registry import SourceKind
from forebay.datatasks.sources.common.option_types import (
    MESSAGE_BYTES_MAX,
    MESSAGE_ROWS_MAX,
    Scalar,
    StreamOptions,
    Text,
)


class KafkaKind(SourceKind):
    """A Kafka topic."""

    name: ClassVar[str] = "kafka"
    bounded: ClassVar[bool] = False
    source: ClassVar[str] = "forebay.datatasks.sources.kafka.source:KafkaSource"

    class Options(StreamOptions):
        """One Kafka topic. Rows are cut by the timestamp of their record."""

        bootstrap: Text = Field(description="Brokers: host:port, several separated by commas")
        topic: Text = Field(
            description="Name of the topic",
        )
        format: Literal["arrow-ipc", "json"] = Field(
            default="arrow-ipc",
            description="arrow-ipc: a micro-batch in each message; json: one row",
        )
        message_rows_max: int = Field(
            default=MESSAGE_ROWS_MAX,
            ge=1,
            le=100_000_000,
            description="Most rows of one message; a larger one is bad",
        )
        message_bytes_max: int = Field(
            default=MESSAGE_BYTES_MAX,
            ge=64 << 10,
            le=1 << 30,
            description="Most bytes of one message, as stored and decoded, and of a record batch",
        )
        client: dict[str, Scalar] = Field(
            default_factory=dict,
            description="Further options of the Kafka client (security, timeouts)",
        )
