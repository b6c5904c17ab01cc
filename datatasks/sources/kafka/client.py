"""Talks to one Kafka cluster: topics, offsets by time, committed offsets. Every call is bounded."""

from __future__ import annotations

import logging
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Any, Self

from forebay.datatasks.sources.kafka.client_options import broker_addresses
from forebay.errors import ConfigError, DataError, InfrastructureError
from forebay.system.clock import utc_now
from forebay.system.extras import require_extra

CONNECT_SECONDS = 10.0
CALL_SECONDS = 20.0
_RETRY_SECONDS = 0.2
_LEADER_SECONDS = 0.02
_LATEST, _EARLIEST, _LARGEST = -1, -2, -3  # Kafka's words for them, instead of an instant
_COMMITTED = 1  # Kafka's isolation level; 0 is uncommitted
_ADDRESS_FROM = "the address (the source's `bootstrap`, or KAFKA_BOOTSTRAP)"


@dataclass(frozen=True)
class Topic:
    """A topic as the cluster knows it; the id changes when it is deleted and created again."""

    name: str
    topic_id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True)
class OffsetAt:
    """An offset that was asked for, its record's own timestamp and leader epoch; -1: unknown."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


def kafka_library() -> Any:  # noqa: ANN401 - kafka-python ships no types
    """The module `kafka`. MissingExtraError when the extra is not installed."""
    require_extra("kafka")
    import kafka

    # These tell of each failed attempt; what fails for good is raised as an error of ours.
    for name in ("kafka.net", "kafka.cluster"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    return kafka


def wait_for_port(bootstrap: str, timeout_seconds: float = CONNECT_SECONDS) -> None:
    """Wait until one of the addresses accepts a connection.

    A client of kafka-python that finds nobody leaves its thread and sockets behind, so none is
    made before somebody listens.

    Raises:
        ConfigError: for what is no address.
        InfrastructureError: when nobody listens before the deadline.
    """
    try:
        bootstrap = broker_addresses(bootstrap)
    except ValueError as error:
        raise ConfigError(f"{error}: correct {_ADDRESS_FROM}") from error
    deadline = time.monotonic() + timeout_seconds
    while reason := _refusal(bootstrap):
        if time.monotonic() >= deadline:
            raise InfrastructureError(
                f"no Kafka broker answers at {bootstrap}: {reason}: start that broker, or correct "
                f"{_ADDRESS_FROM}"
            )
        time.sleep(_RETRY_SECONDS)


def _refusal(bootstrap: str) -> str:
    """Why the last address of the list accepts no connection; empty where one of them does."""
    for address in bootstrap.split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=2.0):
                return ""
        except OSError as error:
            reason = str(error) or repr(error)
    return reason


def new_client(name: str, bootstrap: str, declared: Mapping[str, Any], **settings: object) -> Any:  # noqa: ANN401
    """A connected client of kafka-python: our `settings`, and `declared` ones that it knows.

    Raises:
        ConfigError: for declared options that the brokers or the client refuse.
        InfrastructureError: when the brokers do not answer as Kafka does.
    """
    library = kafka_library()
    errors, client_class = library.errors, getattr(library, name)
    faults: list[BaseException] = []
    options = {
        "bootstrap_servers": bootstrap.split(","),
        "kafka_client": partial(_checked_client, faults),
        "client_id": "forebay",
        "bootstrap_timeout_ms": int(CONNECT_SECONDS * 1000),
        **settings,
        **{name: value for name, value in declared.items() if name in client_class.DEFAULT_CONFIG},
    }
    # Trying again would fail too: TLS or SASL do not fit the declaration.
    refusals = (
        *(ConfigError, ssl.SSLError, errors.KafkaConfigurationError, errors.IllegalSaslStateError),
        *(errors.UnsupportedSaslMechanismError, errors.SaslAuthenticationFailedError),
    )
    try:
        return client_class(**options)
    except errors.KafkaError as error:
        fault = faults[-1] if faults else error
        reason = f"Kafka at {bootstrap}: {fault}"
        if isinstance(fault, refusals) or isinstance(fault.__context__, refusals):
            raise ConfigError(f"{reason}: correct options.client") from error
        raise InfrastructureError(reason) from error


def _checked_client(faults: list[BaseException], **config: Any) -> Any:  # noqa: ANN401
    """What an option `kafka_client` makes: its connections are as declared, or carry no byte.

    kafka-python derives both TLS and SASL from a text that it compares itself, so what it did is
    looked at. Its private names are those of the pinned version; without them nothing connects.
    faults: where it puts why connections failed.
    """
    from kafka.net.compat import KafkaNetClient

    client = KafkaNetClient(**config)
    manager = attrgetter("_manager")(client)
    connect = attrgetter("_connect")(manager)

    def checked_connect(node: Any, conn: Any, **more: Any) -> Any:  # noqa: ANN401
        made, protocol = conn.connection_made, config["security_protocol"]

        def connection_made(transport: Any) -> None:  # noqa: ANN401
            tls = getattr(attrgetter("_sock")(transport), "version", lambda: None)()
            found = ("SASL_" if conn.sasl_enabled else "") + ("SSL" if tls else "PLAINTEXT")
            if found != protocol:
                raise ConfigError(f"the connection to {node.host} is not {protocol}, as declared")
            made(transport)

        conn.connection_made = connection_made
        conn.init_future.add_errback(faults.append)
        return connect(node, conn, **more)

    vars(manager)["_connect"] = checked_connect
    return client


class Cluster:
    """One admin connection, opened at the first call and opened again when it was lost."""

    def __init__(
        self,
        bootstrap: str,
        call_seconds: float = CALL_SECONDS,
        client: Mapping[str, Any] | None = None,
    ) -> None:
        self.bootstrap = bootstrap
        self._client = client or {}
        self._call_seconds = call_seconds
        self._admin: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    def call(self, what: str, action: Callable[[Any], Any]) -> Any:  # noqa: ANN401
        """Again after passing errors; InfrastructureError when the deadline is over."""
        errors = kafka_library().errors
        deadline = time.monotonic() + self._call_seconds
        while True:
            try:
                return action(self._connected(deadline))
            except errors.UnknownTopicOrPartitionError:
                raise
            except errors.KafkaError as error:
                if not error.retriable or time.monotonic() >= deadline:
                    raise InfrastructureError(
                        f"Kafka at {self.bootstrap}: {what} failed: {error}"
                    ) from error
                self.close()  # after a broker restart the old connection may never recover
                time.sleep(_RETRY_SECONDS)

    def ping(self) -> None:
        """Ask for the cluster's description: proves that the broker serves requests."""
        self.call("describing the cluster", lambda admin: admin.describe_cluster())

    def topic_names(self) -> list[str]:
        """Every topic that is not Kafka's own."""
        names: list[str] = self.call("listing topics", lambda admin: admin.list_topics())
        return sorted(name for name in names if not name.startswith("__"))

    def topic(self, name: str) -> Topic | None:
        """None when there is none; InfrastructureError when the cluster is not allowed to tell."""
        errors = kafka_library().errors

        def action(admin: Any) -> Any:  # noqa: ANN401
            (found,) = admin.describe_topics([name])
            problem = errors.for_code(found["error_code"])
            if problem is errors.UnknownTopicOrPartitionError:
                return None
            if problem is not errors.NoError:  # such an answer has no partitions
                raise problem(name)
            return found

        found = self.call(f"describing topic {name!r}", action)
        if found is None:
            return None
        partitions = tuple(sorted(each["partition_index"] for each in found["partitions"]))
        return Topic(name, str(found["topic_id"]), partitions)

    def offsets_at(
        self, topic: Topic, instants_ms: Mapping[int, int] | int
    ) -> dict[int, OffsetAt | None]:
        """For each partition the first record stamped at or after its instant; None: no such."""
        found = self._list_offsets(topic, instants_ms)
        return {partition: at if at.offset >= 0 else None for partition, at in found.items()}

    def first_offsets(self, topic: Topic) -> dict[int, int]:
        found = self._list_offsets(topic, _EARLIEST)
        return {partition: at.offset for partition, at in found.items()}

    def stable_ends(self, topic: Topic) -> dict[int, OffsetAt]:
        """For each partition the last stable offset: no transaction is open before it."""
        return self._list_offsets(topic, _LATEST, level=_COMMITTED)

    def newest_ms(self, topic: Topic) -> int | None:
        """The largest record timestamp of the topic; None when it is empty."""
        found = self.offsets_at(topic, _LARGEST)
        return max((at.timestamp_ms for at in found.values() if at), default=None)

    def cleanup_policy(self, name: str) -> str:
        return self._settings(name)["cleanup.policy"]

    def kept_since(self, topic: Topic) -> datetime | None:
        """The instant since which retention has deleted nothing; None when nobody can tell."""
        settings = self._settings(topic.name)
        limit_ms = int(settings["retention.ms"])
        if limit_ms < 0 or int(settings["retention.bytes"]) >= 0:
            return None
        return utc_now() - timedelta(milliseconds=limit_ms)

    def _settings(self, name: str) -> dict[str, str]:
        from kafka.admin import ConfigResource, ConfigResourceType

        resource = ConfigResource(ConfigResourceType.TOPIC, name)
        found = self.call(
            "reading a topic's settings",
            lambda admin: admin.describe_configs([resource], config_filter="all"),
        )
        return {key: str(each["value"]) for key, each in found["topic"][name].items()}

    def committed(self, group: str, topic: Topic) -> dict[int, int]:
        found = self.call(
            "reading committed offsets", lambda admin: admin.list_group_offsets({group: None})
        )
        return {
            key.partition: value.offset
            for key, value in found.get(group, {}).items()
            if key.topic == topic.name and value.offset >= 0
        }

    def commit(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Offsets by (topic, partition). InfrastructureError if one refuses, or nobody answers."""
        structs = kafka_library().structs
        errors = kafka_library().errors
        wanted = {
            structs.TopicPartition(*key): structs.OffsetAndMetadata(offset, "", -1)
            for key, offset in offsets.items()
        }

        def action(admin: Any) -> None:  # noqa: ANN401
            for key, problem in admin.alter_group_offsets(group, wanted).items():
                if problem is not errors.NoError:
                    raise problem(f"group {group} cannot commit {key.topic}/{key.partition}")

        self.call("committing offsets", action)

    def create_topic(self, name: str, partitions: int, settings: Mapping[str, str]) -> bool:
        """Create a topic and wait until every partition has a leader.

        Returns whether it was created here: one that exists stays as it is.
        """
        errors = kafka_library().errors
        declared = {"num_partitions": partitions, "replication_factor": 1, "configs": settings}

        def action(admin: Any) -> bool:  # noqa: ANN401
            try:
                admin.create_topics({name: declared})
            except errors.TopicAlreadyExistsError:
                return False
            return True

        def is_led(admin: Any) -> bool:  # noqa: ANN401
            (found,) = admin.describe_topics([name])
            leaders = [each["leader_id"] for each in found["partitions"] if not each["error_code"]]
            return bool(leaders) and len(leaders) == len(found["partitions"]) and min(leaders) >= 0

        created: bool = self.call(f"creating topic {name}", action)
        deadline = time.monotonic() + self._call_seconds
        while not self.call("describing a topic", is_led):
            if time.monotonic() > deadline:
                raise InfrastructureError(f"topic {name} at {self.bootstrap} has no leader")
            time.sleep(_LEADER_SECONDS)
        return created

    def _connected(self, deadline: float) -> Any:  # noqa: ANN401
        if self._admin is None:
            left = max(deadline - time.monotonic(), 0.0)
            wait_for_port(self.bootstrap, min(left, CONNECT_SECONDS))
            self._admin = new_client(
                "KafkaAdminClient",
                self.bootstrap,
                self._client,
                request_timeout_ms=int(CONNECT_SECONDS * 1000),
                # A broker that starts listens before it serves: that is not an answer yet.
                bootstrap_timeout_ms=int(max(left, 1.0) * 1000),
            )
        return self._admin

    def _list_offsets(
        self, topic: Topic, asked: Mapping[int, int] | int, level: int = 0
    ) -> dict[int, OffsetAt]:
        library = kafka_library()
        each = dict.fromkeys(topic.partitions, asked) if isinstance(asked, int) else asked
        wanted = {library.TopicPartition(topic.name, key): spec for key, spec in each.items()}
        try:
            found = self.call(
                "looking up offsets", lambda admin: admin.list_partition_offsets(wanted, level)
            )
        except library.errors.UnknownTopicOrPartitionError as error:
            raise DataError(f"topic {topic.name} at {self.bootstrap} is gone: {error}") from error
        return {
            key.partition: OffsetAt(
                at.offset, at.timestamp, -1 if at.leader_epoch is None else at.leader_epoch
            )
            for key, at in found.items()
        }
