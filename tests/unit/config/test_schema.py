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


def accepts(value: dict[str, Any], *one: Any) -> bool:
    schema = json_schema(installed_kinds(), *one)
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def test_it_is_a_schema() -> None:
    schema = json_schema(installed_kinds())
    jsonschema.Draft202012Validator.check_schema(schema)
    assert "title" not in schema["$defs"]["StreamSpec"]["properties"]["offset"]


@pytest.mark.parametrize("file", FILES)
def test_one_kind_of_file(file: str) -> None:
    is_source = file.startswith("sources/")
    assert accepts(FILES[file], "source") == is_source
    assert accepts(FILES[file], "pipeline") == (not is_source)


def test_options_are_told_apart_by_kind() -> None:
    source = copy.deepcopy(FILES["sources/kafka.yaml"])
    source["options"] = {"path": "data"}
    assert not accepts(source)
    source["kind"] = "log"
    assert accepts(source)
    source["kind"] = "lgo"
    assert not accepts(source)
    source["kind"] = "kafka"
    del source["options"]
    assert not accepts(source)
