"""Variables in every text of a file."""

from __future__ import annotations

from forebay.config.environment import fill_in, names_of
from forebay.config.yaml_positions import read_document


def test_variables_are_replaced_in_lists_and_below_keys_and_may_be_escaped() -> None:
    document, _ = read_document("a: ['x${X}', {b: '${X}'}]\nc: '$${X}'", "f.yaml")
    assert document is not None
    assert fill_in(document, {"X": "1"}) == []
    assert document.value == {"a": ["x1", {"b": "1"}], "c": "${X}"}


def test_names_are_those_of_texts_with_defaults_and_without_what_is_escaped() -> None:
    options = {
        "bootstrap": "${HOST}:${PORT:-9092}",
        "client": {"sasl_plain_password": "${PASSWORD}", "timeout": 5},
        "list": ["a", ["${DEEP}"]],
        "${KEY}": "$${ESCAPED} $NOT {NEITHER} ${}",
    }
    assert names_of({"options": options}) == {"HOST", "PORT", "PASSWORD", "DEEP"}
    assert names_of(None) == names_of({}) == frozenset()
