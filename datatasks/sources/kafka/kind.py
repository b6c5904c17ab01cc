"""Kind `kafka` as declarations see it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from forebay.config.specs.registry import SourceKind
from forebay.datatasks.sources.common.contract.option_types import (
    MESSAGE_BYTES_MAX,
    MESSAGE_ROWS_MAX,
    StreamOptions,
    Text,
)
from forebay.datatasks.sources.kafka.client_options import Brokers, ClientOptions, TopicName

SchemaId = Annotated[int, Field(ge=0, lt=2**32)]


class KafkaKind(SourceKind):
    """A Kafka topic."""

    name: ClassVar[str] = "kafka"
    bounded: ClassVar[bool] = False
    source: ClassVar[str] = "forebay.datatasks.sources.kafka.source:KafkaSource"

    class Options(StreamOptions):
        """One Kafka topic. Rows are cut by the timestamp of their record."""

        bootstrap: Brokers = Field(description="Brokers: host:port, several separated by commas")
        topic: TopicName = Field(description="Name of the topic")
        format: Literal["arrow-ipc", "json", "protobuf", "avro"] = Field(
            default="arrow-ipc",
            description="What a message holds: a micro-batch (arrow-ipc), or one row (the others)",
        )
        schema_file: Text | None = Field(
            default=None,
            description=(
                "Schema of protobuf messages (a descriptor set) or Avro ones (.avsc), relative to "
                "the project"
            ),
        )
        schema_ids: dict[SchemaId, Text] = Field(
            default_factory=dict,
            description=(
                "Instead of schema_file, for messages framed as a schema registry's clients do: "
                "each id, in quotes, with its file"
            ),
        )
        message_type: Text | None = Field(
            default=None, description="Full name of the protobuf message type, such as shop.Click"
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
        client: ClientOptions = Field(
            default=ClientOptions(),
            description="Further options of the Kafka client (security, timeouts)",
        )

        @model_validator(mode="after")
        def _one_way(self) -> Self:
            is_written = self.format in {"protobuf", "avro"}
            if is_written and bool(self.schema_file) == bool(self.schema_ids):
                raise ValueError(
                    f"format {self.format} needs `schema_file`, or `schema_ids` where messages "
                    "begin with the id of their schema"
                )
            if not is_written and (self.schema_file or self.schema_ids):
                raise ValueError(f"format {self.format} takes no schema files")
            if (self.format == "protobuf") != bool(self.message_type):
                raise ValueError("`message_type` belongs to format protobuf, which needs it")
            return self
