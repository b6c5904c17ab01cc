"""Writes topics in a separate process: Kafka's clients have threads, and cannot be forked."""

from __future__ import annotations

import multiprocessing
import traceback
import uuid
from collections.abc import Callable
from contextlib import closing
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from forebay.datatasks.sources.kafka.client import Cluster
from forebay.datatasks.sources.kafka.producer import create_topic
from support import independent
from support.projects import Topic
from support.there import until
from support.topic_changes import delete_before, grow

_WRITTEN_SECONDS = 20.0
_KNOWN_MS = 1_000  # how old what a producer knows of a topic may be
# A transaction stays open for many steps; brokers abort one after a minute otherwise.
_OPEN_MS = 15 * 60 * 1000


class Writer:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producers: dict[str | None, Any] = {}

    def create(self, topic: str) -> None:
        create_topic(self._bootstrap, topic, 1)

    def grow(self, topic: str, partitions: int) -> None:
        grow(Topic(self._bootstrap, topic), partitions)

        def all_know() -> bool:
            known = (each.partitions_for(topic) for each in self._producers.values())
            return all(len(found or ()) >= partitions for found in known)

        assert until(all_know, _WRITTEN_SECONDS), f"{topic} has no {partitions} partitions"

    def delete_before(self, topic: str, partition: int, offset: int) -> None:
        delete_before(Topic(self._bootstrap, topic), offset, partition)

    def send(
        self, topic: str, partition: int, messages: list[tuple[bytes, int]], end: str | None
    ) -> list[int]:
        """Write (value, timestamp in milliseconds); their offsets.

        end: of their transaction: commit, abort or leave it open; None for none.
        """
        producer = self._producer({None: None, "leave": "open"}.get(end, "short"))
        if end is not None:
            producer.begin_transaction()
        sent = [
            producer.send(topic, value, partition=partition, timestamp_ms=stamp)
            for value, stamp in messages
        ]
        producer.flush()
        offsets = [each.get(20).offset for each in sent]
        if end in {"commit", "abort"}:
            self._end(producer, end)
            self._wait(topic, partition, offsets[-1] + 2, "read_uncommitted")
        return offsets

    def finish(self, topic: str, partition: int, end: str, stable: int) -> None:
        """End the transaction that was left open, and wait for the stable offset."""
        self._end(self._producer("open"), end)
        self._wait(topic, partition, stable, "read_committed")

    def committed(self, topic: str) -> list[tuple[int, int, int]]:
        """Partition, offset and timestamp of each record that a plain consumer reads."""
        found = independent.messages(self._bootstrap, topic, "read_committed")
        return [(each.partition, each.offset, each.timestamp) for each in found]

    def delete(self, topic: str) -> None:
        """And end the transaction that was left open."""
        if "open" in self._producers:
            self._producers.pop("open").close()
        with Cluster(self._bootstrap) as cluster:
            cluster.call("deleting a topic", lambda admin: admin.delete_topics([topic]))

    def close(self) -> None:
        for producer in self._producers.values():
            producer.close()

    def _producer(self, kind: str | None) -> Any:
        if kind not in self._producers:
            from kafka import KafkaProducer

            more = {"transactional_id": f"{uuid.uuid4()}", "transaction_timeout_ms": _OPEN_MS}
            producer = KafkaProducer(
                bootstrap_servers=self._bootstrap,
                metadata_max_age_ms=_KNOWN_MS,
                **(more if kind else {}),
            )
            if kind:
                producer.init_transactions()
            self._producers[kind] = producer
        return self._producers[kind]

    def _end(self, producer: Any, end: str) -> None:
        if end == "commit":
            producer.commit_transaction()
        else:
            producer.abort_transaction()

    def _wait(self, topic: str, partition: int, end: int, isolation: str) -> None:
        from kafka import KafkaConsumer, TopicPartition

        place = TopicPartition(topic, partition)
        consumer = KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=None,
            enable_auto_commit=False,
            isolation_level=isolation,
        )
        with closing(consumer):
            until(lambda: consumer.end_offsets([place])[place] >= end, _WRITTEN_SECONDS)
            assert consumer.end_offsets([place])[place] == end


class RemoteWriter:
    def __init__(self, bootstrap: str) -> None:
        spawned = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawned.Pipe()
        self._process = spawned.Process(target=_serve, args=(theirs, bootstrap), daemon=True)
        self._process.start()
        theirs.close()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not callable(getattr(Writer, name, None)):
            raise AttributeError(name)
        return partial(self._call, name)

    def _call(self, name: str, *arguments: Any) -> Any:
        self._pipe.send((name, arguments))
        answer, failure = self._pipe.recv()
        assert not failure, failure
        return answer


def _serve(pipe: Connection, bootstrap: str) -> None:
    writer = Writer(bootstrap)
    while True:
        try:
            name, arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((getattr(writer, name)(*arguments), ""))
        except Exception:  # noqa: BLE001 - whoever called it has to hear of it
            pipe.send((None, traceback.format_exc()))
