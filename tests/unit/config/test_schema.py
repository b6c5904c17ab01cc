"""The JSON Schema: what editors report and what `check` reports agree."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest
from support.declarations import declarations

from forebay.config.schema import json_schema
from forebay.config.specs.registry import installed_kinds

FILES = declarations()


def accepts(value: dict[str, Any], schema: dict[str, Any] | None = None) -> bool:
    schema = json_schema(installed_kinds()) if schema is None else schema
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def test_it_is_a_schema_and_defaults_are_written_as_in_yaml() -> None:
    schema = json_schema(installed_kinds())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$defs"]["StreamSpec"]["properties"]["offset"]["default"] == "0s"
    assert "title" not in schema["$defs"]["StreamSpec"]["properties"]["offset"]


@pytest.mark.parametrize("file", FILES)
def test_one_kind_of_file(file: str) -> None:
    kinds = installed_kinds()
    is_source = file.startswith("sources/")
    assert accepts(FILES[file], json_schema(kinds, "source")) == is_source
    assert accepts(FILES[file], json_schema(kinds, "pipeline")) == (not is_source)


def test_options_are_told_apart_by_kind() -> None:
    source = copy.deepcopy(FILES["sources/kafka.yaml"])
    source["options"] = {"path": "data"}
    assert not accepts(source)
    source["kind"] = "log"
    assert accepts(source)
    source["kind"] = "lgo"
    assert not accepts(source)


def test_options_that_a_kind_needs() -> None:
    source = copy.deepcopy(FILES["sources/kafka.yaml"])
    del source["options"]
    assert not accepts(source)
