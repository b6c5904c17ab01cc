"""The filter of all output: what it hides, what it leaves, and where it is installed."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from forebay.system.output import redaction
from forebay.system.output.error_report import ErrorReport
from forebay.system.output.redaction import (
    FilteredStream,
    hidden_values,
    hide,
    hide_environment,
    hide_passwords,
    redacted,
)


@pytest.fixture(autouse=True)
def nothing_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test begins with a process that was told nothing, not even by its environment."""
    nothing = redaction._Hidden()
    nothing._knows_environment = True
    monkeypatch.setattr(redaction, "_hidden", nothing)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("postgresql://me:hunter2@db/x", "postgresql://me:***@db/x"),
        ("at s3://KEY:se/cr+et@bucket/x now", "at s3://KEY:***@bucket/x now"),
        ("'amqp://a:b@c', 'amqp://d:e@f'", "'amqp://a:***@c', 'amqp://d:***@f'"),
        ("postgresql://:pw@/db?host=/run", "postgresql://:***@/db?host=/run"),
        ("https://h/x?a=1&sig_token=abc&b=2", "https://h/x?a=1&sig_token=***&b=2"),
        ("host=db password=hunter2 user=me", "host=db password=*** user=me"),
        ('JAAS password="a b;c";', "JAAS password=***;"),
        ("{'sasl_plain_password': 'x y', 'a': 'b'}", "{'sasl_plain_password': '***', 'a': 'b'}"),
        ('{"s3.secret-access-key": "k"}', '{"s3.secret-access-key": "***"}'),
        ("sasl.password=abc,next=1", "sasl.password=***,next=1"),
        ("{b'password': b'abc', b'a': b'b'}", "{b'password': b'***', b'a': b'b'}"),
        ("{'header.Authorization': 'Bearer abc'}", "{'header.Authorization': '***'}"),
        ("https://b/x?X-Amz-Signature=0bad&n=1", "https://b/x?X-Amz-Signature=***&n=1"),
    ],
)
def test_what_says_that_it_is_a_secret_is_hidden(text: str, shown: str) -> None:
    assert (redacted(text), redacted(shown)) == (shown, shown)


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8080/path@2 is up",
        "postgresql://me@db/x",
        "user admin, password in /home/x/passwords.json",
        "read 3 tokens: a, b, c",
        "s3://bucket/folder?endpoint_override=h:1&scheme=http",
        "postgresql://me:${PASSWORD}@db/x",
        "password=${PASSWORD} and password=***",
        "the job's token cannot be read: [Errno 2] No such file",
        "mail to me@example.com: 10:30",
        "",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redacted(text) == text


def test_a_key_of_several_lines_is_hidden_in_whatever_form_its_lines_are_shown() -> None:
    lines = ["MIIEvQIBADANBgkqhkiG9w0BAQEF", "q1w2e3r4t5y6u7i8o9p0aAsSdDfFg"]
    key = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----", ""])
    hide(key, "${KEY}")
    assert redacted(f"key: {key}") == "key: ${KEY}"
    shown = redacted("".join(f"  | {line}\n" for line in key.splitlines())).splitlines()
    assert shown[1:3] == ["  | ${KEY}", "  | ${KEY}"]
    assert shown[0] == "  | -----BEGIN PRIVATE KEY-----"


ODD = "a b/c+d'e\"f"
ADDRESS = "postgresql://me:p%40ssword@db/x"


@pytest.mark.parametrize(
    ("value", "text", "shown"),
    [
        (ODD, f"before {ODD} after", "before ${NAME} after"),
        (ODD, "a%20b/c%2Bd%27e%22f", "${NAME}"),
        (ODD, "a+b%2Fc%2Bd%27e%22f", "${NAME}"),
        (ODD, "a b/c+d'e\\\"f", "${NAME}"),
        ("pässword", repr("pässword".encode()), "b'${NAME}'"),
        (ADDRESS, f"connect {ADDRESS}", "connect ${NAME}"),
        (ADDRESS, "the password p@ssword and p%40ssword", "the password ${NAME} and ${NAME}"),
    ],
)
def test_a_hidden_value_is_shown_as_where_it_came_from_in_every_form(
    value: str, text: str, shown: str
) -> None:
    hide(value, "${NAME}")
    assert redacted(text) == shown


@pytest.mark.parametrize(
    "value",
    [
        *("abc", "12345678", "2026-03-01", "15m", "true", "localhost"),
        *("kafka-1:9092,kafka-2:9092", "host.name:9092", "http://catalog:8181"),
        *("/tmp/some/place", "./data"),
    ],
)
def test_short_and_common_values_stay(value: str) -> None:
    hide(value, "${NAME}")
    assert redacted(f"before {value} after") == f"before {value} after"


def test_what_is_named_a_secret_is_one_whatever_it_looks_like() -> None:
    for value in ("12345678", "/nobody+knows/this", "kafka-1:9092", "events"):
        hide(value, "${NAME}", named_secret=True)
        assert redacted(f"before {value} after") == "before ${NAME} after"
    whole = "${NAME}, events_by_day, all ${NAME}."
    assert redacted("events, events_by_day, all events.") == whole
    hide_passwords("ftp://me:planted@host/x", "${DATA}")
    assert redacted("ftp://me:planted@host/x planted /x") == "ftp://me:${DATA}@host/x ${DATA} /x"


def test_the_environment_names_its_secrets() -> None:
    hide_environment(
        {
            "PGPASSWORD": "planted-one",
            "AWS_SECRET_ACCESS_KEY": "planted-two",
            "FOREBAY_DATABASE": "postgresql://me:planted-three@db/x",
            "GOOGLE_APPLICATION_CREDENTIALS": "/etc/key.json",
            "PATH": "planted-four",
        }
    )
    assert set(hidden_values()) == {"planted-one", "planted-two", "planted-three"}
    shown = redacted("planted-one planted-two planted-three planted-four /etc/key.json")
    assert shown == (
        "${PGPASSWORD} ${AWS_SECRET_ACCESS_KEY} ${FOREBAY_DATABASE} planted-four /etc/key.json"
    )


def test_an_error_that_is_stored_or_sent_has_no_secrets() -> None:
    hide("planted-secret", "${NAME}")
    report = ErrorReport.of(ValueError("it was planted-secret"))
    assert report.message == "ValueError: it was ${NAME}"
    assert ErrorReport(error="E", message="planted-secret", exit_code=4).message == "${NAME}"


def test_a_stream_writes_what_is_left_and_is_otherwise_as_it_was(tmp_path: Path) -> None:
    hide("planted-secret", "${NAME}")
    with (tmp_path / "log").open("w") as below:
        stream = FilteredStream(below)
        assert stream.write("a planted-secret\n") == len("a planted-secret\n")
        print("again: planted-secret", file=stream, flush=True)
        assert (stream.fileno(), stream.isatty()) == (below.fileno(), False)
        assert stream.encoding == below.encoding
        stream.close()
        assert not below.closed
    assert (tmp_path / "log").read_text() == "a ${NAME}\nagain: ${NAME}\n"


def test_long_texts_take_a_time_that_grows_with_their_length() -> None:
    hide("planted-secret", "${NAME}")
    for text in ("a-" * 100_000, "a" * 200_000, "x://" * 50_000, "token-" * 30_000, "s:" * 90_000):
        assert redacted(text) == text  # the suite's own limit ends a test that takes minutes


_PROCESS = """
import logging, threading
from forebay.system.output.process_log import set_up_logging
set_up_logging("role-0")
logging.getLogger("x").error("logged planted-secret")
try:
    raise ValueError("kept planted-secret")
except ValueError:
    logging.getLogger("x").exception("with a traceback")
thread = threading.Thread(target=lambda: 1 / len("planted-secret"[99:]))
thread.start(); thread.join()
print("printed planted-secret", flush=True)
raise RuntimeError("died of planted-secret")
"""


def test_a_process_with_our_log_writes_no_secret_not_even_when_it_dies() -> None:
    command, secret = [sys.executable, "-c", _PROCESS], {"SOME_PASSWORD": "planted-secret"}
    done = subprocess.run(command, env=secret, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    for text in ("logged", "kept", "died of"):
        assert f"{text} ${{SOME_PASSWORD}}" in done.stderr
    assert done.stdout == "printed ${SOME_PASSWORD}\n"
    lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
    assert not [each for each in lines if "planted-secret" in each and not each.startswith("    ")]
    assert "ZeroDivisionError" in done.stderr


def test_a_stream_is_filtered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    redaction.filter_output(stdout=False)
    first = sys.stderr
    redaction.filter_output(stdout=False)
    assert sys.stderr is first
    assert isinstance(sys.stdout, io.StringIO)
