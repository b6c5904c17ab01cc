"""A problem on one line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from forebay.config.yaml.problems import Problem, errors

SLIP = Problem("a.yaml", 3, 5, "unknown-key", "unknown key 'wegiht'")


@pytest.mark.parametrize(
    ("hint", "way_out"),
    [
        *(("", ""), ("weight", " (did you mean weight?)")),
        *(('"NO way"', ' (did you mean "NO way"?)'), ("move it away", " (move it away)")),
    ],
)
def test_a_spelling_is_a_question_and_words_are_said_as_they_are(hint: str, way_out: str) -> None:
    assert str(replace(SLIP, hint=hint)) == f"a.yaml:3:5: unknown key 'wegiht'{way_out}"


def test_a_note_is_no_error() -> None:
    note = replace(SLIP, severity="note")
    assert (str(note), errors([note, SLIP])) == ("a.yaml:3:5: note: unknown key 'wegiht'", [SLIP])
    assert SLIP.to_json()["column"] == 5
    assert "severity" not in SLIP.to_json()
