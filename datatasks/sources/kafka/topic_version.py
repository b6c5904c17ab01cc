"""Which topic was planned, and whether it is the one that is read.

The same name and offsets may mean other records by now: the topic was deleted and created again,
or a leader that lacked some of its records was elected, and others were written in their place.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Self

from forebay.datatasks.sources.common.rows.offset_runs import COMPACTED
from forebay.datatasks.sources.kafka.client import Cluster
from forebay.datatasks.sources.kafka.read import Stretch
from forebay.datatasks.sources.kafka.wire.messages import Messages
from forebay.errors import DataError


class TopicVersion(NamedTuple):
    """What a task of a partition remembers of it.

    leader_epoch: the newest one when it was planned, which is that of no earlier record; -1 where
    the broker knows none.
    """

    topic_id: str
    leader_epoch: int

    @classmethod
    def of_text(cls, text: str) -> Self:
        topic_id, _, epoch = text.rpartition("@")
        return cls(topic_id, int(epoch))

    @property
    def text(self) -> str:
        return f"{self.topic_id}@{self.leader_epoch}"


class PlannedStretch:
    def __init__(self, cluster: Cluster, stretch: Stretch, version: TopicVersion) -> None:
        self._cluster, self._stretch, self._version = cluster, stretch, version
        self._compacts = False

    def checked(self, found: Iterator[Messages]) -> Iterator[Messages]:
        """The messages that were planned, each offset without one being known to have none.

        Raises:
            DataError: when the topic is another one, before the first message or after the last, or
                records of it were replaced or lost.
        """
        self._require_same_topic()
        try:
            for messages in found:
                self._require_same_leaders(messages)
                self._require_no_hole(messages)
                yield messages
        except DataError:
            self._require_same_topic()  # where it is another one, that is the reason
            raise
        self._require_same_topic()

    def _require_same_topic(self) -> None:
        topic = self._cluster.topic(self._stretch.topic)
        if topic is None:
            raise DataError(
                f"topic {self._stretch.topic} was planned with the id {self._version.topic_id}, "
                "but has been deleted: create and fill it again, and run the window again"
            )
        if topic.topic_id != self._version.topic_id:
            raise DataError(
                f"topic {topic.name} was planned with the id {self._version.topic_id}, but now has "
                f"the id {topic.topic_id}: it was deleted and created again, and its offsets are "
                "those of other records. Run the window again, which plans it from the topic as it "
                "is"
            )

    def _require_same_leaders(self, messages: Messages) -> None:
        if messages.leader_epoch > self._version.leader_epoch >= 0:
            raise DataError(
                f"{self._stretch.place}: the offsets {messages.runs[0].first} to {messages.end} "
                f"were planned when the leader epoch was {self._version.leader_epoch}, but were "
                f"written in epoch {messages.leader_epoch}: the partition was truncated (an "
                "unclean leader election does that), and they now hold other records. Forget the "
                "window, and plan it again"
            )

    def _require_no_hole(self, messages: Messages) -> None:
        hole = next((run for run in messages.runs if run.kind == COMPACTED), None)
        if hole is None or self._compacts:
            return
        policy = self._cluster.cleanup_policy(self._stretch.topic)
        self._compacts = "compact" in policy
        if not self._compacts:
            raise DataError(
                f"{self._stretch.place}: the offsets {hole.first} to {hole.end - 1} were planned, "
                "but hold neither a record nor a mark of a transaction, and the topic's "
                f"cleanup.policy is {policy}, which never removes single records: they are lost. "
                "Restore them; if they were compacted earlier, set cleanup.policy to compact again"
            )
