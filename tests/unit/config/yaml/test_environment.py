"""Variables in every text of a file."""

from __future__ import annotations

import pytest

from forebay.config.yaml.environment import (
    fill_in,
    fill_names,
    hide_written,
    names_of,
    written_secrets,
)
from forebay.config.yaml.positions import read_document
from forebay.system.output import redaction
from forebay.system.output.redaction import redacted


def test_variables_are_replaced_in_lists_and_below_keys_and_may_be_escaped() -> None:
    document, _ = read_document("a: ['x${X}', {b: '${X}'}]\nc: '$${X}'", "f.yaml")
    assert fill_in(document, {"X": "1"}) == []
    assert document.value == {"a": ["x1", {"b": "1"}], "c": "${X}"}


def test_a_home_folder_is_filled_in_as_a_shell_would() -> None:
    """A file that sets variables of a service or a container leaves `~` as it is."""
    variables = {"HOME": "/home/ann", "DATA": "~/data", "ODD": "a~/b", "KEY_TOKEN": "~/token"}
    document, _ = read_document(
        "a: ${DATA}/x\nb: sqlite:///${DATA}\nc: ${ODD}\nd: ${KEY_TOKEN}", "f"
    )
    assert fill_in(document, variables) == []
    assert document.value == {
        "a": "/home/ann/data/x",
        "b": "sqlite:////home/ann/data",
        "c": "a~/b",
        "d": "~/token",
    }
    assert fill_names("${DATA}", {"DATA"}, variables) == "/home/ann/data"


def test_secrets_in_plain_text_are_noted_without_showing_them() -> None:
    text = (
        "options:\n  client:\n    sasl_plain_password: planted\n    ssl_password: ${PW}\n"
        "  uri: postgresql://u:planted@h/d\n  token: ${T:-planted}\n  path: s3://a/b\n"
    )
    document, _ = read_document(text, "f.yaml")
    fill_in(document, {"PW": "x"})
    found = list(written_secrets(document))
    assert [str(each).partition(" a password is written here")[0] for each in found] == [
        "f.yaml:3:26: note: options.client.sasl_plain_password:",
        "f.yaml:5:8: note: options.uri:",
        "f.yaml:6:10: note: options.token:",
    ]
    assert "write ${SASL_PLAIN_PASSWORD}, for example" in found[0].message
    assert not any("planted" in str(each) for each in found)


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
