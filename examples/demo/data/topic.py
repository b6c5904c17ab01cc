"""The stream of the demo on a real Kafka broker: started, filled once, stopped again."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from examples.demo.data.flight_data import stream_rows
from examples.demo.data.stores import PARTITIONS, micro_batches
from forebay.datatasks.sources.kafka.producer import create_topic, publish_batches
from forebay.embedded.kafka.broker import BOOTSTRAP_NAME, Broker
from forebay.home.paths import Home
from forebay.system.files.durable import write_atomically

TOPIC_NAME = "DEPARTURES_TOPIC"


class Topic:
    """The topic with the complete stream: one left by an interrupted attempt is never reused."""

    def __init__(self, home: Home, environ: dict[str, str], content: str) -> None:
        """`environ` receives the addresses that the YAML refers to."""
        self.name = ""
        self.bootstrap = ""
        self._content = content
        self._environ = environ
        self._broker = Broker(home, dict(environ))
        self._marker = home.root / "demo" / "published.json"

    def start(self, wait: timedelta) -> str:
        """Start the broker and publish the stream if needed; a line that says what was done."""
        status = self._broker.start()
        self.bootstrap = status.bootstrap
        place = "started here" if status.own else "yours"
        # A user's broker is known by its address; ours belongs to this home, whatever its port.
        wanted = {"content": self._content, "broker": "own" if status.own else status.bootstrap}
        found = json.loads(self._marker.read_text()) if self._marker.is_file() else {}
        if wanted.items() <= found.items():
            self.name, what = found["topic"], "reused"
        else:
            self.name = f"forebay-demo-departures-{secrets.token_hex(4)}"
            create_topic(self.bootstrap, self.name, PARTITIONS)
            messages = publish_batches(self.bootstrap, self.name, _batches(wait))
            self._marker.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._marker, json.dumps({**wanted, "topic": self.name}))
            what = f"{messages:,} micro-batches published"
        self._environ |= {BOOTSTRAP_NAME: self.bootstrap, TOPIC_NAME: self.name}
        return f"kafka  broker {self.bootstrap} ({place}), topic {self.name}: {what}"

    def stop(self) -> None:
        """Stop the broker if it is ours."""
        self._broker.stop()


def _batches(wait: timedelta) -> Iterator[tuple[pa.RecordBatch, datetime, int]]:
    for sent in micro_batches(stream_rows(wait), wait):
        yield sent.batch, datetime.fromtimestamp(sent.sent_ms / 1000, UTC), sent.partition
