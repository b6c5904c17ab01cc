"""YAML read with positions: places, anchors, and everything that is not accepted."""

from __future__ import annotations

from datetime import date

import pytest
from support.there import there

from forebay.config.yaml.positions import Document, read_document


def read(text: str) -> Document:
    document, problems = read_document(text, "f.yaml")
    assert problems == []
    return there(document)


def test_places_of_keys_and_values_count_from_one() -> None:
    document = read("a: 1\nlist:\n  - x\n  - {deep: yes}\n")
    assert document.value == {"a": 1, "list": ["x", {"deep": True}]}
    assert document.key_place(("a",)) == (1, 1)
    assert document.value_place(("a",)) == (1, 4)
    assert document.value_place(("list", 0)) == (3, 5)
    assert document.key_place(("list", 1, "deep")) == (4, 6)
    assert document.value_place(("list", 1, "deep")) == (4, 12)
    assert document.raw["list", 1, "deep"] == "yes"


def test_a_key_that_is_not_there_stands_where_its_parent_does() -> None:
    document = read("first: 1\na:\n  b: 1\n")
    assert document.key_place(("a", "c", "d")) == (2, 1)
    assert document.value_place(("nothing",)) == (1, 1)


def test_scalars_follow_the_safe_loader() -> None:
    document = read("a: 2026-03-01\nb: no\nc: '5'\nd: 1e3\ne: 0x10\nf: ~\ng: =\n")
    values = (date(2026, 3, 1), False, "5", "1e3", 16, None, "=")
    assert document.value == dict(zip("abcdefg", values, strict=True))


def test_anchors_and_merge_keys() -> None:
    document = read(
        "base: &b {x: 1, y: 2}\nsame: *b\nmerged:\n  <<: *b\n  y: 3\nmore: {<<: [*b]}\n"
    )
    assert document.value["same"] == {"x": 1, "y": 2}
    assert document.value["merged"] == {"x": 1, "y": 3}
    assert document.value["more"] == {"x": 1, "y": 2}
    assert document.key_place(("merged", "y")) == (5, 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (1, 1, "empty-file")),
        ("# only a comment\n", (1, 1, "empty-file")),
        *(("- a\n", (1, 1, "not-a-mapping")), ("text", (1, 1, "not-a-mapping"))),
        *(("a: 1\nb: [1, 2\n", (3, 1, "syntax")), ("a: 1\n\tb: 2\n", (2, 1, "syntax"))),
        *(("a: 1\n---\nb: 2\n", (2, 1, "syntax")), ("a: *nothing\n", (1, 4, "syntax"))),
        ("a: 1\nb: 2\na: 3\n", (3, 1, "duplicate-key")),
        ("a:\n  no: int\n", (2, 3, "key-not-text")),
        ("a: !!python/object:os.system x\n", (1, 4, "tag")),
        *(("a: !mine {b: 1}\n", (1, 4, "tag")), ("a: !!binary aGk=\n", (1, 4, "tag"))),
        *(("a: 2026-13-45\n", (1, 4, "syntax")), ("a: b\x07\n", (1, 5, "syntax"))),
        *(("a: &a [*a]\n", (1, 4, "syntax")), ("a: &a {<<: *a}\n", (1, 4, "syntax"))),
        *(("? [1, 2]\n: 1\n", (1, 3, "syntax")), ("a: {<<: 5}\n", (1, 9, "syntax"))),
        *(("a: !mine [1]\n", (1, 4, "tag")), ("a: !!seq b\n", (1, 4, "tag"))),
        ("a: !!map b\n", (1, 4, "tag")),
    ],
)
def test_what_cannot_be_read_is_one_problem(text: str, expected: tuple[int, int, str]) -> None:
    _, problems = read_document(text, "f.yaml")
    assert [(each.line, each.column, each.code) for each in problems] == [expected]


def test_an_unquoted_bool_as_a_key_is_told_and_kept() -> None:
    document, problems = read_document("columns:\n  on: int\n", "f.yaml")
    assert (document.value, problems[0].hint) == ({"columns": {"on": "int"}}, '"on"')


def test_in_a_document_of_nothing_everything_stands_at_its_beginning() -> None:
    assert Document("f.yaml").key_place(("a", "b")) == (1, 1)
    assert read_document("- 1\n", "f.yaml")[0] is None, "what is no mapping is no document"


def test_a_tab_is_named_where_it_stands() -> None:
    _, problems = read_document("a:\n  b: 1\n\tc: 2\n", "f.yaml")
    assert [str(problem) for problem in problems] == [
        "f.yaml:3:1: this is not YAML: a tab is not allowed here: indent with spaces"
    ]


@pytest.mark.parametrize(
    ("text", "column", "hint"),
    [
        ("a: {b: ${X}, c: 1}", 9, '"${X}"'),
        ("a: [x, ${X}]", 9, '"${X}"'),
        ("a: {b: ${X:-planted}}", 9, ""),
    ],
)
def test_a_variable_inside_of_braces_needs_quotes(text: str, column: int, hint: str) -> None:
    _, [problem] = read_document(text, "f.yaml")
    assert (problem.column, problem.hint) == (column, hint)
    assert problem.message == "inside {} and [] a value with a variable has to be in quotes"
    document, problems = read_document(text.replace("${", '"${').replace("}", '}"', 1), "f.yaml")
    assert (problems, there(document).value["a"] is None) == ([], False)
