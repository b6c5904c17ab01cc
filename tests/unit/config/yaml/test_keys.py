"""Unknown keys: which known key a typo is taken for, and what becomes of the value."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field
from support.there import there

from forebay.config.specs.base import Spec
from forebay.config.yaml.keys import check_keys
from forebay.config.yaml.positions import Document, read_document


class Shelf(Spec):
    """Three keys that are equally near to `cat`."""

    bat: int = 0
    hat: int
    mat: int = 0


class Drawer(Spec):
    spoon: int
    knife: int


def read(text: str) -> Document:
    document, problems = read_document(text, "f.yaml")
    assert problems == []
    return there(document)


class Pair(Spec):
    """A choice between models that nothing but their keys tells apart."""

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


def test_without_a_tag_the_model_with_most_of_the_keys_is_meant() -> None:
    for text, value in (
        ("one: {spoon: 1, knif: 2}", {"spoon": 1, "knife": 2}),
        ("one: {hat: 1, bad: 2}", {"hat": 1, "bat": 2}),
    ):
        document = read(text)
        (problem,) = check_keys(document, Pair)
        assert problem.hint in value
        assert document.value == {"one": value}


class Rack(Spec):
    things: list[Drawer] | dict[str, Drawer] = Field(default=[])


def test_slips_inside_of_lists_and_mappings_that_a_key_may_have() -> None:
    for text in ("things: [{spon: 1, knife: 2}]", "things: {top: {spon: 1, knife: 2}}"):
        (problem,) = check_keys(read(text), Rack)
        assert (problem.code, problem.hint) == ("unknown-key", "spoon")


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    spoon: int = 0


def test_where_any_key_is_allowed_none_is_a_slip() -> None:
    document = read("spon: 1")
    assert (check_keys(document, Open), document.value) == ([], {"spon": 1})


class Sizes(BaseModel):
    number: int | float = 0
    word: str | int = 0
    bounded: Annotated[float, Field(ge=0)] | None = None
    shelves: Annotated[list[Shelf], Field(max_length=2)] | None = None


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("number: yes", "number: a number is expected, but unquoted yes is a bool in YAML", ""),
        ("bounded: yes", "bounded: a number is expected, but unquoted yes is a bool in YAML", ""),
        ("shelves: [{hta: 1}]", "unknown key 'hta' in shelves[0]", "hat"),
        (
            "word: yes",
            "word: text or a number is expected, but unquoted yes is a bool in YAML: quote it",
            '"yes"',
        ),
    ],
)
def test_a_bool_is_no_number(text: str, message: str, hint: str) -> None:
    (problem,) = check_keys(read(text), Sizes)
    assert (problem.message, problem.hint) == (message, hint)


class Square(Spec):
    kind: Literal["square"]
    side: int = 0


class Circle(Spec):
    kind: Literal["circle"]
    radius: int = 0


Shape = Annotated[Square | Circle, "what is drawn", Field(discriminator="kind")]


class Drawing(Spec):
    shape: Annotated[Square | Circle, Field(discriminator="kind")]
    others: list[Shape] = Field(default=[])


@pytest.mark.parametrize(
    ("text", "hints", "shape"),
    [
        ("{kidn: circle, radius: 1}", ["kind"], {"kind": "circle", "radius": 1}),
        ("{kidn: circle, raduis: 1}", ["kind", "radius"], {"kind": "circle", "radius": 1}),
        ("{kind: circle, raduis: 1}", ["radius"], {"kind": "circle", "radius": 1}),
        ("{radius: 1, zzzz: 2}", [], {"radius": 1, "zzzz": 2}),
        ("{kind: circle}", [], {"kind": "circle"}),
    ],
)
def test_a_misspelled_key_that_tells_models_apart(
    text: str, hints: list[str], shape: dict[str, object]
) -> None:
    document = read(f"shape: {text}")
    assert [problem.hint for problem in check_keys(document, Drawing)] == hints
    assert document.value == {"shape": shape}


def test_a_tag_may_be_any_of_several_notes_on_a_type() -> None:
    document = read("{shape: {kind: circle}, others: [{kind: circle, side: 1}]}")
    (problem,) = check_keys(document, Drawing)
    # Without the tag the model with most of the keys would be meant.
    assert problem.message == "unknown key 'side' in others[0]; known keys: kind, radius"


def test_a_key_at_the_top_is_told_so() -> None:
    place = "at the top of the file"
    for key, more in (("other", "; known keys: bat, hat, mat"), ("mta", "")):
        (problem,) = check_keys(read(f"{key}: 1\nhat: 1"), Shelf)
        assert problem.message == f"unknown key '{key}' {place}{more}"
