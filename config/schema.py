"""One JSON Schema for every file of a project; editors complete and check YAML with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.json_schema import (
    DEFAULT_REF_TEMPLATE,
    CoreModeRef,
    CoreRef,
    DefsRef,
    GenerateJsonSchema,
    models_json_schema,
)

from forebay.config.specs.base import format_duration
from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.registry import SourceKind
from forebay.config.specs.sources import SourceSpec
from forebay.config.yaml.keys import yaml_fields

SchemaFor = Literal["source", "pipeline"]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_MODELS: dict[SchemaFor, type[BaseModel]] = {"source": SourceSpec, "pipeline": PipelineSpec}


class _Generator(GenerateJsonSchema):
    """Durations as YAML writes them; no titles that only repeat a key."""

    def encode_default(self, dft: Any) -> Any:  # noqa: ANN401 - as pydantic declares it
        if isinstance(dft, timedelta):
            return format_duration(dft)
        return super().encode_default(dft)

    def get_defs_ref(self, core_mode_ref: CoreModeRef) -> DefsRef:
        """Every kind has an inner class `Options`, so its definition also gets the kind's name."""
        reference, mode = core_mode_ref
        named = CoreRef(re.sub(r"(?:Kind)?\.Options:", "Options:", reference))
        return super().get_defs_ref((named, mode))

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401, ARG002 - as above
        return False


def json_schema(
    kinds: Mapping[str, type[SourceKind]], only: SchemaFor | None = None
) -> dict[str, Any]:
    """The schema of both types of file, or of one. The `kind` decides which options apply."""
    models = [*_MODELS.values(), *(kind.Options for kind in kinds.values())]
    references, document = models_json_schema(
        [(model, "validation") for model in dict.fromkeys(models)],
        schema_generator=_Generator,
        ref_template=DEFAULT_REF_TEMPLATE,
    )
    definitions = document["$defs"]
    names = {
        model: str(references[model, "validation"]["$ref"]).rpartition("/")[2] for model in models
    }
    for model in _MODELS.values():
        _drop_file_name(definitions[names[model]], model)
    _tell_kinds_apart(definitions[names[SourceSpec]], kinds, names)
    wanted = [only] if only else list(_MODELS)
    roots = [{"$ref": f"#/$defs/{names[_MODELS[each]]}"} for each in wanted]
    root = roots[0] if only else {"oneOf": roots}
    return {"$schema": DIALECT, "title": "Forebay", **root, "$defs": definitions}


def _drop_file_name(definition: dict[str, Any], model: type[BaseModel]) -> None:
    """The name comes from the file's name and is not written in it."""
    known = yaml_fields(model)
    definition["properties"] = {
        key: value for key, value in definition["properties"].items() if key in known
    }
    definition["required"] = [key for key in definition["required"] if key in known]


def _tell_kinds_apart(
    definition: dict[str, Any],
    kinds: Mapping[str, type[SourceKind]],
    names: Mapping[type[BaseModel], str],
) -> None:
    definition["properties"]["kind"]["enum"] = list(kinds)
    definition["allOf"] = [
        {
            "if": {"properties": {"kind": {"const": name}}, "required": ["kind"]},
            "then": _options(kind, names[kind.Options]),
        }
        for name, kind in kinds.items()
    ]


def _options(kind: type[SourceKind], definition: str) -> dict[str, Any]:
    then: dict[str, Any] = {"properties": {"options": {"$ref": f"#/$defs/{definition}"}}}
    if any(field.is_required() for field in kind.Options.model_fields.values()):
        then["required"] = ["options"]
    return then
