"""Kind `iceberg` as declarations see it."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field, field_validator

from forebay.config.specs.base import Spec
from forebay.config.specs.registry import SourceKind
from forebay.datatasks.sources.common.contract.option_types import Scalar, Text, require_url
from forebay.system.names import shown


class IcebergKind(SourceKind):
    """An Iceberg table."""

    name: ClassVar[str] = "iceberg"
    bounded: ClassVar[bool] = True
    source: ClassVar[str] = "forebay.datatasks.sources.iceberg.source:IcebergSource"

    class Options(Spec):
        """One Iceberg table."""

        catalog: dict[str, Scalar] = Field(
            min_length=1,
            description="Properties of the catalog as pyiceberg names them (type, uri, …)",
        )
        table: Text = Field(description="Identifier in the catalog, such as shop.clicks")

        @field_validator("catalog")
        @classmethod
        def _reachable(cls, value: dict[str, Scalar]) -> dict[str, Scalar]:
            if "uri" in value:
                require_url(str(value["uri"]))
            return value

        @field_validator("table")
        @classmethod
        def _named(cls, value: str) -> str:
            parts = value.split(".")
            if len(parts) < 2 or not all(part.strip() for part in parts):
                raise ValueError(f"{shown(value)} names no table: write one like shop.clicks")
            return value
