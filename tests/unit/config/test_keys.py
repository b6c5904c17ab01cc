"""Unknown keys: which known one a slip is taken for, and what the value becomes."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ConfigDict

from forebay.config.keys import check_keys
from forebay.config.yaml_positions import Document, read_document


class Shelf(BaseModel):
    """Three keys that are equally near to `cat`."""

    model_config = ConfigDict(extra="forbid")

    bat: int = 0
    hat: int
    mat: int = 0


class Drawer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    spoon: int
    knife: int


def read(text: str) -> Document:
    document, problems = read_document(text, "f.yaml")
    assert problems == []
    assert document is not None
    return document


class Pair(BaseModel):
    """A choice between models that nothing but their keys tells apart."""

    model_config = ConfigDict(extra="forbid")

    one: Shelf | Drawer


@pytest.mark.parametrize(
    ("text", "meant", "value"),
    [
        ("cat: 1", "hat", {"hat": 1}),  # the one that has to be there
        ("cat: 1\nhat: 2", "bat", {"hat": 2, "bat": 1}),
        ("cat: 1\nhat: 2\nbat: 3", "mat", {"hat": 2, "bat": 3, "mat": 1}),
        ("cat: 1\nhat: 2\nbat: 3\nmat: 4", "bat", {"hat": 2, "bat": 3, "mat": 4}),
        ("other: 1", "", {}),
    ],
)
def test_a_slip_is_taken_for_what_is_missing(text: str, meant: str, value: dict[str, int]) -> None:
    document = read(text)
    (problem,) = check_keys(document, Shelf)
    assert (problem.code, problem.line, problem.hint) == ("unknown-key", 1, meant)
    assert document.value == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("one: {spoon: 1, knif: 2}", {"spoon": 1, "knife": 2}),
        ("one: {hat: 1, bad: 2}", {"hat": 1, "bat": 2}),
    ],
)
def test_without_a_tag_the_model_with_most_of_the_keys_is_meant(
    text: str, value: dict[str, int]
) -> None:
    document = read(text)
    (problem,) = check_keys(document, Pair)
    assert problem.hint in value
    assert document.value == {"one": value}
