"""Values of a wrong form: one sentence for each mistake, at its place."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, StringConstraints, field_validator

from forebay.config.yaml.environment import fill_in
from forebay.config.yaml.positions import read_document
from forebay.config.yaml.validation import validate

Key = Annotated[str, StringConstraints(pattern="^[a-z]+$")]


class Line(BaseModel):
    start: int
    end: int = Field(default=9, ge=0)


class Spot(BaseModel):
    at: int
    colour: Literal["red", "green"] = "red"


class Square(BaseModel):
    kind: Literal["square"]
    side: int


class Circle(BaseModel):
    kind: Literal["circle"]
    radius: int


class Page(BaseModel):
    title: str = Field(default="t", min_length=1, pattern="^[a-z]+$")
    even: int = 2
    share: float = Field(default=0.5, gt=0, lt=1)
    sizes: dict[Key, int] = {}
    items: list[Line] = Field(default=[], max_length=2)
    pair: tuple[int, int] = (1, 2)
    either: Line | Spot | None = None
    words: str | list[str | int] = ""
    shape: Annotated[Square | Circle, Field(discriminator="kind")] | None = None

    @field_validator("even")
    @classmethod
    def _is_even(cls, value: int) -> int:
        if value % 2:
            raise ValueError(f"{value} is odd")
        return value


def problems(text: str) -> list[tuple[int, str, str]]:
    """(line, code, message) of each problem with a page."""
    document, unread = read_document(text, "f.yaml")
    assert unread == []
    _, found = validate(Page, document.value, document)
    return [(each.line, each.code, each.message) for each in found]


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("even: 3", "wrong-value", "even: 3 is odd"),
        ("title: ''", "wrong-value", "title: the text is empty"),
        ("title: A", "wrong-value", "title: String should match pattern '^[a-z]+$'"),
        ("title: 5", "wrong-type", "title: text is expected, not 5 (a whole number); YAML reads"),
        ("share: 0", "wrong-value", "share: 0 must be greater than 0"),
        ("share: 1", "wrong-value", "share: 1 must be less than 1"),
        ("items: [{start: 1, end: -1}]", "wrong-value", "items[0].end: -1 must be at least 0"),
        ("items: [{}]", "missing-key", "key 'start' is missing in items[0]: add it"),
        ("items: {}", "wrong-type", "items: a list is expected, not a mapping"),
        ("pair: [1]", "missing-key", "key 1 is missing in pair: add it"),
        ("pair: [1, x]", "wrong-type", "pair[1]: a whole number is expected, not 'x' (text)"),
        ("sizes: {A: 1}", "wrong-value", "sizes.A: String should match pattern '^[a-z]+$'"),
        ("sizes: {a: x}", "wrong-type", "sizes.a: a whole number is expected, not 'x' (text)"),
        ("words: 5", "wrong-type", "words: text or a list is expected, not 5 (a whole number)"),
        ("words: [a, {}]", "wrong-type", "words[1]: text or a whole number is expected, not a"),
        ("either: 5", "wrong-type", "either: a mapping is expected, not 5 (a whole number)"),
        ("either: {start: x}", "wrong-type", "either.start: a whole number is expected, not 'x'"),
        ("either: {start: 1, end: -1}", "wrong-value", "either.end: -1 must be at least 0"),
        ("shape: {side: 1}", "missing-key", "key 'kind' is missing in shape: add it"),
        ("shape: {kind: oval}", "wrong-value", "shape.kind: 'oval' is not one of square, circle"),
        ("shape: {kind: square}", "missing-key", "key 'side' is missing in shape: add it"),
    ],
)
def test_one_thing_that_is_wrong(text: str, code: str, message: str) -> None:
    [(line, found, told)] = problems(text)
    assert (line, found) == (1, code)
    assert told.startswith(message)


def test_each_thing_that_is_wrong_is_told_at_its_place() -> None:
    text = "even: 3\nitems:\n- {start: x, end: -1}\n- {end: y}\neither: {start: x, end: -1}\n"
    told = [(line, message.partition(" ")[0]) for line, _, message in problems(text)]
    assert told == [
        *((1, "even:"), (3, "items[0].start:"), (3, "items[0].end:"), (4, "key")),
        *((4, "items[1].end:"), (5, "either.start:"), (5, "either.end:")),
    ]


def test_a_wrong_value_of_the_environment_is_shown_as_it_is_written() -> None:
    document, _ = read_document("title: ${TITLE}\nkeys: x\n", "page.yaml")
    assert fill_in(document, {"TITLE": "planted"}) == []

    class Titled(BaseModel):
        title: str
        keys: str

        @field_validator("title")
        @classmethod
        def _is_none(cls, value: str) -> str:
            raise ValueError(f"{value!r} is no title")

    _, (found,) = validate(Titled, document.value, document)
    assert found.message == "title: '${TITLE}' is no title"
