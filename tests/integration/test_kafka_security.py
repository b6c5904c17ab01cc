"""What is declared of a connection is what brokers see, from its first byte on."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forebay.datatasks.sources.kafka import client
from forebay.datatasks.sources.kafka.client import new_client
from forebay.datatasks.sources.kafka.client_options import ClientOptions
from forebay.errors import ConfigError, InfrastructureError

SASL = {"sasl_mechanism": "plain", "sasl_plain_username": "u", "sasl_plain_password": "p"}
PLAIN_SASL = {"security_protocol": "SASL_PLAINTEXT", **SASL}
SASL_TLS = {"security_protocol": "sasl_ssl", **SASL}
TLS = {"security_protocol": "ssl"}
TLS_HANDSHAKE = 0x16


class Listener:
    """A broker that only listens. heard: the first bytes of each connection that sent some."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept)
        self._thread.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._socket.getsockname()[1]}"

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection:
                    connection.settimeout(1.0)
                    with contextlib.suppress(OSError):
                        first = connection.recv(4096)
                        self.heard += [first] if first else []


@pytest.fixture
def listener(monkeypatch: pytest.MonkeyPatch, closed_sockets: None) -> Iterator[Listener]:
    monkeypatch.setattr(client, "CONNECT_SECONDS", 1.0)
    found = Listener()
    yield found
    found.close()


def connect(listener: Listener, kind: str, declared: dict[str, Any]) -> None:
    settings = ClientOptions.model_validate(declared).settings(Path())
    new_client(kind, listener.address, settings).close()


@pytest.mark.parametrize("kind", ["KafkaAdminClient", "KafkaConsumer"])
@pytest.mark.parametrize("declared", [TLS, SASL_TLS])
def test_tls_begins_with_its_first_byte(
    listener: Listener, kind: str, declared: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError, match=r"Handshake failed.*: correct options\.client"):
        connect(listener, kind, declared)
    assert {first[0] for first in listener.heard} == {TLS_HANDSHAKE}


@pytest.mark.parametrize(
    ("place", "declared"),
    [
        ("manager.KafkaConnectionManager.ssl_enabled", TLS),
        ("connection.KafkaConnection.sasl_enabled", PLAIN_SASL),
    ],
)
def test_a_connection_that_is_not_as_declared_carries_nothing(
    listener: Listener, monkeypatch: pytest.MonkeyPatch, place: str, declared: dict[str, Any]
) -> None:
    """As of a client that takes the declaration for something else."""
    monkeypatch.setattr(f"kafka.net.{place}", property(lambda _: False))
    with pytest.raises(ConfigError, match=r"is not (SSL|SASL_PLAINTEXT), as declared"):
        connect(listener, "KafkaAdminClient", declared)
    assert listener.heard == []


def test_a_word_that_the_client_does_not_know_connects_to_nothing(listener: Listener) -> None:
    with pytest.raises(ConfigError, match="is not ssl, as declared"):
        new_client("KafkaAdminClient", listener.address, TLS)
    assert listener.heard == []


def test_options_that_contradict_each_other_are_the_declarations(listener: Listener) -> None:
    with pytest.raises(ConfigError, match=r"must be larger than .* correct"):
        connect(listener, "KafkaConsumer", {"request_timeout_ms": 100})


def test_plain_text_is_asked_for_by_nobody_else(listener: Listener) -> None:
    with pytest.raises(InfrastructureError):
        connect(listener, "KafkaAdminClient", {})
    assert listener.heard
    assert TLS_HANDSHAKE not in {first[0] for first in listener.heard}
