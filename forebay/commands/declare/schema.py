"""`forebay schema`: the JSON Schema of all declarations."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, cast

from forebay.commands.shared.output import Output, OutputFormat, option
from forebay.config.schema import SchemaFor, json_schema
from forebay.config.specs.registry import installed_kinds


class SchemaOf(StrEnum):
    SOURCE = "source"
    PIPELINE = "pipeline"
    BOTH = "both"


def schema(
    of: Annotated[
        SchemaOf, option("--for", help="The file the schema is for.", show_default=True)
    ] = SchemaOf.BOTH,
) -> None:
    """Print the JSON Schema of the YAML files.

    Editors complete and check YAML with it. It includes the options of every installed kind.
    """
    only = None if of is SchemaOf.BOTH else cast("SchemaFor", of.value)
    Output(OutputFormat.JSON).json(json_schema(installed_kinds(), only))
