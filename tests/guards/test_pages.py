"""The pages that are made from the code say what the code says."""

from __future__ import annotations

from typing import Any

import pytest
from pages import keys_without_meaning, pages, reference_page
from support.manual import manual_page

from forebay.config.schema import json_schema
from forebay.config.specs.registry import installed_kinds


@pytest.fixture
def schema() -> dict[str, Any]:
    return json_schema(installed_kinds())


def test_each_page_is_what_the_code_says() -> None:
    made = pages()
    assert len(made) == 4
    other = [path.name for path, text in made.items() if path.read_text() != text]
    assert other == [], "run `make pages`"


def test_every_key_has_a_meaning(schema: dict[str, Any]) -> None:
    assert keys_without_meaning(schema) == []


def test_a_key_without_a_meaning_is_found(schema: dict[str, Any]) -> None:
    del schema["$defs"]["KafkaOptions"]["properties"]["topic"]["description"]
    assert keys_without_meaning(schema) == ["KafkaOptions.topic"]


def test_defaults_are_those_of_the_place_and_shown_whole(schema: dict[str, Any]) -> None:
    page = reference_page(schema)
    assert "`model.mixture.memory_tower.hidden` | list of integer, 1 to 65,536 | `[32, 16]`" in page
    assert "`model.mixture.adapt_tower.hidden` | list of integer, 1 to 65,536 | `[64, 32]`" in page
    assert "| `[]` | `FOREBAY_ASKED` |" in manual_page()
