"""Variables in every text of a file."""

from __future__ import annotations

from forebay.config.environment import fill_in
from forebay.config.yaml_positions import read_document


def test_variables_are_replaced_in_lists_and_below_keys_and_may_be_escaped() -> None:
    document, _ = read_document("a: ['x${X}', {b: '${X}'}]\nc: '$${X}'", "f.yaml")
    assert document is not None
    assert fill_in(document, {"X": "1"}) == []
    assert document.value == {"a": ["x1", {"b": "1"}], "c": "${X}"}
