"""Variables in every text of a file."""

from __future__ import annotations

import pytest

from forebay.config.yaml.environment import fill_in, hide_written, names_of
from forebay.config.yaml.positions import read_document
from forebay.system.output import redaction
from forebay.system.output.redaction import redacted


def test_variables_are_replaced_in_lists_and_below_keys_and_may_be_escaped() -> None:
    document, _ = read_document("a: ['x${X}', {b: '${X}'}]\nc: '$${X}'", "f.yaml")
    assert fill_in(document, {"X": "1"}) == []
    assert document.value == {"a": ["x1", {"b": "1"}], "c": "${X}"}


YAML = """
options:
  password: planted-as-a-mistake
  path: s3://KEY:planted-in-an-address@bucket/x
  client: {sasl.password: [planted-in-a-list], tokens_per_second: 100000, region: not-a-secret}
  secret: ${UNSET:-planted-as-a-default}
columns: {token: string}
secret: planted-at-the-top
"""


def test_secrets_that_yaml_holds_itself_are_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they are a mistake: the line of one is shown, in Airflow too."""
    monkeypatch.setattr(redaction, "_hidden", redaction._Hidden())
    document, _ = read_document(YAML, "f.yaml")
    hide_written(document.value, ("options", "columns"))
    shown = redacted(YAML)
    assert "planted" not in shown
    assert "tokens_per_second: 100000, region: not-a-secret" in shown
    assert "columns: {token: string}" in shown


def test_names_are_those_of_texts_with_defaults_and_without_what_is_escaped() -> None:
    options = {
        "bootstrap": "${HOST}:${PORT:-9092}",
        "client": {"sasl_plain_password": "${PASSWORD}", "timeout": 5},
        "list": ["a", ["${DEEP}"]],
        "${KEY}": "$${ESCAPED} $NOT {NEITHER} ${}",
    }
    assert names_of({"options": options}) == {"HOST", "PORT", "PASSWORD", "DEEP"}
    assert names_of(None) == names_of({}) == frozenset()
