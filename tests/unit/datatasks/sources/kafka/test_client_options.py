"""Options of a topic and of its client: refused, or given to the client in its own form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from forebay.config.load import load_project
from forebay.config.yaml.problems import Problem
from forebay.datatasks.sources.kafka.client_options import ClientOptions
from forebay.datatasks.sources.kafka.kind import KafkaKind
from forebay.errors import ConfigError

ADDRESSES = ("localhost:9092", "b-1.example.org:1", "kafka_1:65535", "10.0.0.1:9092", "[::1]:9092")
ODD_ADDRESSES = (
    *("localhost", "10.0.0.1", "::1", "::1:9092", "[::1]", "[::g]:9092", ":9092", "a b:9092"),
    *("PLAINTEXT://localhost:9092", "http://a:9092/", "u@a:9092", "a:", "a:kafka", "a:0", "a:-1"),
    *("a:65536", "a:9092:9093", "a..b:9092", "-a:9092", "a:9092,", ",a:9092", "a:9092,,b:9092"),
    *(",", "a:9092;b:9092", "a:9092 b:9092", "[a:9092]", "ä:9092", "a:٣", "a-:9092"),
    f"{'a' * 64}:9092",  # a label that no resolver takes
)  # fmt: skip
SASL = {"sasl_mechanism": "plain", "sasl_plain_username": "u", "sasl_plain_password": "p"}


def problems(tmp_path: Path, options: str, **environ: str) -> list[Problem]:
    """What `check` finds in a source whose options begin in line 3."""
    folder = tmp_path / "config" / "sources"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "s.yaml").write_text(f"kind: kafka\noptions:\n{options}columns: {{id: int}}\n")
    return load_project(tmp_path / "config", environ).problems


@pytest.mark.parametrize("address", [*ADDRESSES, ",".join(ADDRESSES), " a:9092 ,\tb:9092 "])
def test_addresses(address: str) -> None:
    found = KafkaKind.Options.model_validate({"bootstrap": address, "topic": "t"}).bootstrap
    assert found == address.replace(" ", "").replace("\t", "")


@pytest.mark.parametrize("address", ODD_ADDRESSES)
def test_odd_addresses_are_refused_with_the_form_that_is_expected(
    tmp_path: Path, address: str
) -> None:
    (found,) = problems(tmp_path, f"  topic: t\n  bootstrap: '{address}'\n")
    assert (found.line, found.column) == (4, 14)
    assert "is not host:port, such as broker.example.org:9092 or [::1]:9092" in found.message


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_words_may_be_in_any_case(protocol: str) -> None:
    more = SASL if protocol.startswith("SASL") else {}
    for word in (protocol, protocol.lower(), protocol.title()):
        options = ClientOptions.model_validate({"security_protocol": word, **more})
        settings = options.settings(Path())
        assert settings["security_protocol"] == protocol
        assert settings.get("sasl_mechanism") == ("PLAIN" if more else None)


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("security_protocol: TLS", "'TLS' is not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("security_protocol: 'ssl '", "is not one of PLAINTEXT, SSL"),
        ("security_protocol: ''", "is not one of PLAINTEXT, SSL"),
        ("security_protocol: true", "is not one of PLAINTEXT, SSL"),
        ("api_version: auto", "'auto' is not a version of Kafka, such as \"3.9\""),
        ("api_version: 2.8", "text is expected, not 2.8 (a number)"),
        *((f"api_version: '{odd}'", "is not a version of Kafka") for odd in ("0.9", "3.٣")),
        ("request_timeout_ms: 30s", "a whole number is expected, not '30s' (text)"),
        ("request_timeout_ms: 1.5", "a whole number is expected"),
        ("request_timeout_ms: 0", "0 must be at least 1"),
        ("fetch_max_bytes: 4294967296", "must be less than"),
        ("ssl_check_hostname: maybe", "true or false is expected"),
        ("client_id: 7", "text is expected, not 7"),
        ("client_id: ''", "the text is empty"),
        ("request_timeout_ms: [1]", "a whole number is expected"),
        ("sasl_mechanism: plain", "security_protocol is PLAINTEXT, which does not use it"),
        ("ssl_cafile: ca.pem", "write SSL or SASL_SSL there"),
        ("security_protocol: sasl_ssl", "sasl_mechanism must be set too"),
        *((f"{name}: x", f"unknown key '{name}'") for name in ("acks", "proxy_url", "group_id")),
        ("isolation_level: READ_COMMITTED", "unknown key 'isolation_level'"),
        ("auto_offset_reset: Earliest", "unknown key 'auto_offset_reset'"),
        ("security_protocoll: SSL", "unknown key 'security_protocoll'"),
    ],
)  # fmt: skip
def test_what_a_client_would_misread(tmp_path: Path, written: str, says: str) -> None:
    found = problems(tmp_path, f"  bootstrap: a:9092\n  topic: t\n  client:\n    {written}\n")
    assert [(each.line, says in each.message) for each in found] == [(6, True)], found


def test_a_password_that_is_a_number_is_not_shown(tmp_path: Path) -> None:
    client = "{security_protocol: sasl_ssl, sasl_mechanism: plain, sasl_plain_password: 12345678}"
    found = problems(tmp_path, f"  bootstrap: a:9092\n  topic: t\n  client: {client}\n")
    assert "sasl_plain_password: text is expected" in found[0].message
    assert "12345678" not in str(found)


def test_numbers_may_come_from_the_environment(tmp_path: Path) -> None:
    written = "  bootstrap: a:9092\n  topic: t\n  client: {fetch_max_bytes: '${BYTES:-4096}'}\n"
    assert (problems(tmp_path, written), problems(tmp_path, written, BYTES="8192")) == ([], [])
    (found,) = problems(tmp_path, written, BYTES="8 MB")
    assert "a whole number is expected, not ${BYTES:-4096} (text)" in found.message
    assert ClientOptions.model_validate({"fetch_max_bytes": "4096"}).fetch_max_bytes == 4096


def test_a_client_is_given_its_own_types(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    client = {"security_protocol": "ssl", "ssl_cafile": "ca.pem", "api_version": "3.9"}
    assert ClientOptions.model_validate(client).settings(tmp_path) == {
        "security_protocol": "SSL",
        "ssl_cafile": str(tmp_path / "ca.pem"),
        "api_version": (3, 9),
    }
    with pytest.raises(ConfigError, match=r"options\.client\.ssl_cafile: .* No such file"):
        ClientOptions.model_validate(client).settings(tmp_path / "elsewhere")


@pytest.mark.parametrize("topic", ["a b", ".", "..", "a/b", "ü", "x" * 250])
def test_a_topic_that_no_broker_can_have(topic: str) -> None:
    with pytest.raises(ValidationError, match="is no topic's name"):
        KafkaKind.Options.model_validate({"bootstrap": "a:9092", "topic": topic})


def test_a_client_library_is_not_chosen(tmp_path: Path) -> None:
    written = "  bootstrap: a:9092\n  topic: t\n  library: confluent-kafka\n"
    (found,) = problems(tmp_path, written)
    assert str(found).endswith(
        "sources/s.yaml:5:3: unknown key 'library' in options; remove it: kafka-python reads every "
        "topic"
    )


BOTH = {"format": "avro", "schema_file": "a", "schema_ids": {1: "b"}}
BASE = {"bootstrap": "localhost:9092", "topic": "clicks"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"format": "avro", "schema_ids": {"7": "a.avsc", 8: "b.avsc"}},
        {"format": "protobuf", "schema_file": "a.desc", "message_type": "shop.Click"},
        {"format": "protobuf", "schema_ids": {0: "a.desc"}, "message_type": "shop.Click"},
    ],
)
def test_what_fits_together(options: dict[str, Any]) -> None:
    found = KafkaKind.Options.model_validate(BASE | options)
    assert all(isinstance(number, int) for number in found.schema_ids)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"format": "avro"}, "format avro needs `schema_file`, or `schema_ids`"),
        (BOTH, "format avro needs `schema_file`, or `schema_ids`"),
        ({"format": "json", "schema_file": "a"}, "format json takes no schema files"),
        ({"schema_ids": {1: "a"}}, "format arrow-ipc takes no schema files"),
        ({"format": "protobuf", "schema_file": "a"}, "`message_type` belongs to format protobuf"),
        ({"format": "json", "message_type": "a"}, "`message_type` belongs to format protobuf"),
        ({"format": "avro", "schema_ids": {-1: "a"}}, "greater than or equal to 0"),
        ({"format": "avro", "schema_ids": {2**32: "a"}}, "less than 4294967296"),
    ],
)
def test_what_does_not(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        KafkaKind.Options.model_validate(BASE | options)
