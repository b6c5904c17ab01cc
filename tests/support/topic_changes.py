"""What may happen to a topic: transactions, compaction, deletion, another topic of that name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any

from forebay.datatasks.sources.kafka.client import Cluster
from forebay.datatasks.sources.kafka.producer import create_topic
from support.independent import messages
from support.projects import Topic
from support.there import until

# So small that each few records are a segment, and the cleaner takes any of them.
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "50",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "0",
}
_CLEANED_SECONDS = 60.0
_GONE_SECONDS = 10.0


class Transactions:
    def __init__(self, producer: Any, topic: str) -> None:
        self._producer, self._topic = producer, topic

    def write(
        self, messages: Sequence[tuple[bytes, int]], partition: int = 0, *, abort: bool = False
    ) -> None:
        """One transaction of (value, timestamp in milliseconds)."""
        self._producer.begin_transaction()
        for value, stamp_ms in messages:
            self._producer.send(self._topic, value, partition=partition, timestamp_ms=stamp_ms)
        self._producer.flush()
        if abort:
            self._producer.abort_transaction()
        else:
            self._producer.commit_transaction()


@contextmanager
def transactions(topic: Topic) -> Iterator[Transactions]:
    from kafka import KafkaProducer

    name = f"{topic.name}-transactions"
    producer = KafkaProducer(bootstrap_servers=topic.bootstrap, transactional_id=name)
    producer.init_transactions()
    yield Transactions(producer, topic.name)
    producer.close()


def delete_before(topic: Topic, offset: int, partition: int = 0) -> None:
    from kafka import KafkaAdminClient, TopicPartition

    with closing(KafkaAdminClient(bootstrap_servers=topic.bootstrap)) as admin:
        admin.delete_records({TopicPartition(topic.name, partition): offset})


def grow(topic: Topic, partitions: int) -> None:
    from kafka import KafkaAdminClient

    with closing(KafkaAdminClient(bootstrap_servers=topic.bootstrap)) as admin:
        admin.create_partitions({topic.name: partitions})


def configure(topic: Topic, settings: Mapping[str, str]) -> None:
    from kafka.admin import ConfigResourceType

    _configure(topic.bootstrap, ConfigResourceType.TOPIC, topic.name, settings)


def _configure(bootstrap: str, kind: Any, name: str, settings: Mapping[str, str]) -> None:
    from kafka import KafkaAdminClient
    from kafka.admin import ConfigResource

    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        admin.alter_configs([ConfigResource(kind, name, configs=dict(settings))])


def delete_topic(cluster: Cluster, name: str) -> None:
    cluster.call("deleting a topic", lambda admin: admin.delete_topics([name]))
    assert until(lambda: cluster.topic(name) is None, _GONE_SECONDS), f"{name} is not deleted"


def recreate(topic: Topic) -> tuple[str, str]:
    """Delete the topic and create one of its name; both ids."""
    with Cluster(topic.bootstrap) as cluster:
        before = cluster.topic(topic.name)
        delete_topic(cluster, topic.name)
        create_topic(topic.bootstrap, topic.name, 1)
        after = cluster.topic(topic.name)
    assert before is not None
    assert after is not None
    return before.topic_id, after.topic_id


def compact(topic: Topic, left: int) -> None:
    """Wait until the cleaner has left so many records of the only partition.

    The last segment is never cleaned: write something after what is to be compacted.
    """
    from kafka.admin import ConfigResourceType

    # The cleaner starts anew with these; two buffers of the default size fill the broker's heap.
    often = {"log.cleaner.backoff.ms": "100", "log.cleaner.dedupe.buffer.size": str(4 << 20)}
    _configure(topic.bootstrap, ConfigResourceType.BROKER, "1", often)

    def found() -> int:
        return len(list(messages(topic.bootstrap, topic.name)))

    until(lambda: found() <= left, _CLEANED_SECONDS, 0.2)
    assert found() == left
