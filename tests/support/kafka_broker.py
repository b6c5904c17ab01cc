"""One real Kafka broker for the test session, and topics that no other test uses."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Iterator

import pytest

from forebay.datatasks.sources.kafka.producer import create_topic
from forebay.embedded.kafka.broker import Broker
from forebay.errors import InfrastructureError
from forebay.home.paths import Home


@pytest.fixture(scope="session")
def kafka_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the session's broker, or of KAFKA_BOOTSTRAP's."""
    broker = Broker(Home(tmp_path_factory.mktemp("kafka-home")))
    try:
        status = broker.start()
    except InfrastructureError as error:
        pytest.fail(f"no Kafka broker: {error}\n`make test-embedded` runs the tests without one.")
    yield status.bootstrap
    broker.stop()


@pytest.fixture
def closed_sockets(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For tests in which a broker is down: closes what kafka-python 3.0 drops unclosed.

    Its client forgets the socket of a refused connection; closed by the garbage collector, it
    would be a ResourceWarning in any test.
    """
    from kafka.net.inet import KafkaNetSocket

    opened: list[socket.socket] = []
    create = KafkaNetSocket.socket

    def remember(net: KafkaNetSocket, *arguments: int) -> socket.socket:
        opened.append(create(net, *arguments))
        return opened[-1]

    monkeypatch.setattr(KafkaNetSocket, "socket", remember)
    yield
    for each in opened:
        each.close()


@pytest.fixture
def new_topic(kafka_bootstrap: str) -> Callable[..., str]:
    """Creates a topic with a name of its own: new_topic(partitions, **settings)."""

    def create(partitions: int = 1, **settings: str) -> str:
        name = f"test-{uuid.uuid4().hex[:12]}"
        named = {key.replace("_", "."): value for key, value in settings.items()}
        create_topic(kafka_bootstrap, name, partitions, named)
        return name

    return create
