"""Kind `kafka`: one topic, cut into windows by the timestamps of its records."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path

from forebay.config.specs.base import Spec
from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval
from forebay.config.yaml.spelling import nearest
from forebay.datatasks.sources.common.contract.base import (
    Commits,
    Describes,
    Description,
    Finding,
    PartitionLag,
    Readiness,
    Scan,
    Source,
    ended,
)
from forebay.datatasks.sources.common.rows.chunks import empty_chunk, joined
from forebay.datatasks.sources.common.streams.stream_borders import stamp_words
from forebay.datatasks.sources.common.values.far_times import are_far
from forebay.datatasks.sources.common.values.times import Times
from forebay.datatasks.sources.formats.decoder import Decoder, MessageLimits, Written
from forebay.datatasks.sources.formats.decoders import decoder_named
from forebay.datatasks.sources.kafka.borders import TopicBorders
from forebay.datatasks.sources.kafka.chunks import ChunkMaker, message_location, microseconds
from forebay.datatasks.sources.kafka.client import Cluster, Topic
from forebay.datatasks.sources.kafka.kind import KafkaKind
from forebay.datatasks.sources.kafka.read import Access, Reader, Stretch, read_messages
from forebay.datatasks.sources.kafka.topic_version import PlannedStretch, TopicVersion
from forebay.datatasks.sources.kafka.wire.messages import Messages
from forebay.datatasks.tasks import Chunk, DataTask, Position, ReadUnit
from forebay.errors import ConfigError, DataError, InfrastructureError, MissingExtraError
from forebay.system.clock import utc_now
from forebay.system.instants import MICROSECOND, shown_instant, to_us

_LOOK_BYTES = 64 << 10
_LOOK_SECONDS = 5.0
# Each costs a fetch; of more partitions than these the oldest records are not looked at.
_LOOKED_AT = 64
_SAMPLE_MESSAGES = 20
_TOPICS_SHOWN = 8


def _first_time(reader: Reader, stretch: Stretch) -> datetime | None:
    """The time of the first record, or None. One that nobody stamped has the time -1."""
    with suppress(DataError, InfrastructureError):  # retention passes it by, or it is slow
        for messages in reader.messages(stretch):
            if messages.timestamps:
                return shown_instant(messages.timestamps[0] * 1000)
    return None


class KafkaSource(KafkaKind, Source, Describes, Commits):
    """A Kafka topic. A row's identity is its partition and offset (and row in the message)."""

    options: KafkaKind.Options

    def __init__(self, spec: SourceSpec, options: Spec, root: Path) -> None:
        super().__init__(spec, options, root)
        client = self.options.client.settings(root)
        self.access = Access(
            self.options.bootstrap, client, bytes_max=self.options.message_bytes_max
        )
        self._cluster = Cluster(self.options.bootstrap, client=client)

    def describe(self) -> Description:
        topic = self._cluster.topic(self.options.topic)
        if topic is None:
            return Description({}, empty_reason=self._no_topic())
        newest = self._cluster.newest_ms(topic)
        values = [value for value, _ in self._sample(topic)]
        columns = self._described(values)
        # The broker knows no newest one of records that nobody stamped.
        reason = "" if newest is not None or values else f"topic {topic.name} has no records"
        if values and not columns:
            reason = f"the newest messages of {topic.name} are not {self.options.format}"
        return Description(
            columns,
            [str(partition) for partition in topic.partitions],
            shown_instant(newest * 1000) if newest is not None else None,
            reason,
        )

    def newest_values(self) -> list[bytes]:
        """Some of the newest messages that are of the format.

        Raises:
            DataError: when there is no such topic, or none of them is.
        """
        topic = self._cluster.topic(self.options.topic)
        if topic is None:
            raise DataError(self._no_topic())
        values = [value for value, _ in self._sample(topic)]
        bad = self._bad([], values)
        if len(bad) == len(values):
            why = next(iter(bad.values()), "it has no records")
            raise DataError(f"topic {topic.name}: no {self.options.format} messages: {why}")
        return [value for at, value in enumerate(values) if at not in bad]

    def first_whole_day(self) -> date | None:
        """The first day (UTC) of which retention has taken nothing; None where no time is known.

        Where it has taken nothing at all, the day of the first record.
        """
        topic = self._cluster.topic(self.options.topic)
        firsts = {} if topic is None else self._cluster.first_offsets(topic)
        known = [(firsts[int(each.partition)], each.oldest) for each in self.lag("forebay-init")]
        cut = [oldest.date() + timedelta(days=1) for first, oldest in known if first and oldest]
        return max(cut) if cut else min((at.date() for _, at in known if at), default=None)

    def findings(self) -> list[Finding]:
        topic = self._cluster.topic(self.options.topic)
        if topic is None:
            guess = nearest(self.options.topic, self._cluster.topic_names())
            return [Finding(("options", "topic"), "nothing-matched", self._no_topic(), guess)]
        try:
            self._decoder([])
        except MissingExtraError:
            raise
        except ConfigError as error:  # of a schema file
            key = "schema_file" if self.options.schema_file else "schema_ids"
            return [Finding(("options", key), "schema-file", str(error))]
        sample = self._sample(topic)
        if not sample:
            return []
        values = [value for value, _ in sample]
        stored = self._described(values)
        if not stored:
            bad = self._bad([], values)
            reason = next(iter(bad.values()), "its messages have no columns")
            return [Finding(("options", "format"), "undecodable", f"{topic.name}: {reason}")]
        return [*self._time_findings(sample), *self._column_findings(values, stored)]

    def _time_findings(self, sample: list[tuple[bytes, int]]) -> Iterator[Finding]:
        now_us, times = to_us(utc_now()), microseconds([stamp for _, stamp in sample])
        ahead = self.options.timestamp_jump_max
        if are_far(times, now_us, ahead).all() or times[-1] > now_us + ahead // MICROSECOND:
            message = f"topic {self.options.topic}: {stamp_words(times, now_us)}"
            yield Finding(("options", "topic"), "row-times", message)

    def _column_findings(self, values: list[bytes], stored: dict[str, str]) -> Iterator[Finding]:
        """What the newest messages say about each declared column, and those that say nothing."""
        undecodable = self._bad([], values)
        if undecodable:
            reason = min(undecodable.items())[1]
            message = f"one of the newest messages of {self.options.topic}: {reason}"
            yield Finding(("options", "format"), "undecodable", message)
            values = [value for at, value in enumerate(values) if at not in undecodable]
        for name in self.spec.columns:
            if name not in stored:
                guess = nearest(name, stored)
                hint = f"did you mean {guess!r}?" if guess else f"they have {', '.join(stored)}"
                message = f"the newest messages of {self.options.topic} have no {name!r}: {hint}"
                yield Finding(("columns", name), "column-missing", message)
                continue
            reasons = self._bad([name], values)
            if reasons:
                reason = min(reasons.items())[1]
                message = f"one of the newest messages of {self.options.topic}: {reason}"
                yield Finding(("columns", name), "column-type", message)

    def readiness(self, span: Interval) -> Readiness:
        return ended(span, self.options.close_delay)

    def scan(self, spans: Sequence[Interval]) -> Scan:
        topic = self._cluster.topic(self.options.topic)
        if topic is None:
            raise DataError(f"source {self.spec.name!r}: {self._no_topic()}")
        jump, now = self.options.timestamp_jump_max, utc_now()
        borders = TopicBorders(self._cluster, self.access, topic, spans, self.borders, jump, now)
        kept_since = self._cluster.kept_since(topic) if any(borders.firsts.values()) else None
        borders.require_all_kept(spans, self.spec.starts, kept_since)
        stored = {str(p): (borders.firsts[p], borders.ends[p].offset) for p in topic.partitions}

        def newest(partition: str) -> Times:
            whole = Stretch(topic.name, int(partition), *stored[partition])
            return microseconds(
                [each for found in self._newest(whole) for each in found.timestamps]
            )

        borders.require_near(stored, newest, jump, now)
        borders.decide()
        return Scan(
            borders.tasks(spans),
            [borders.fingerprint(span) for span in spans],
            1 + borders.calls,
            [
                {str(each): borders.offsets(str(each), span) for each in topic.partitions}
                for span in spans
            ],
        )

    def open(
        self, task: DataTask, position: Position | None, columns: Sequence[str], chunk_rows: int
    ) -> Iterator[Chunk]:
        """A consumer of its own for each call: runner threads share nothing."""
        (row_range,) = task.ranges
        start = position or Position(row_range.first, 0)
        topic, _, partition = row_range.path.rpartition("/")
        stretch = Stretch(topic, int(partition), max(start.part, row_range.first), row_range.end)
        decoder, policy = self._decoder(columns), self.spec.bad_rows
        maker = ChunkMaker(decoder, stretch, task, start, policy, chunk_rows)
        last = empty_chunk(columns, self.spec.columns, Position(row_range.end, 0))
        version = TopicVersion.of_text(row_range.version)
        planned = PlannedStretch(self._cluster, stretch, version)
        found = planned.checked(read_messages(self.access, stretch))
        yield from joined(maker.chunks(found), chunk_rows, last)

    def units(self, task: DataTask, position: Position) -> Iterator[ReadUnit]:
        (row_range,) = task.ranges
        for offset in range(max(position.part, row_range.first), row_range.end):
            first = Position(offset, 0)
            yield ReadUnit(
                first=first, end=Position(offset + 1, 0), location=self.location(task, first)
            )

    def before(self, task: DataTask, position: Position) -> DataTask:
        (row_range,) = task.ranges
        shorter = row_range.model_copy(update={"end": min(position.part, row_range.end)})
        return task.model_copy(update={"ranges": (shorter,)})

    def location(self, task: DataTask, position: Position) -> dict[str, str | int]:
        topic, _, partition = task.ranges[0].path.rpartition("/")
        one_row = self.options.format != "arrow-ipc"
        return message_location(topic, int(partition), position, one_row=one_row)

    def commit(self, group: str, progress: Mapping[str, tuple[DataTask, Position]]) -> None:
        """The offset of the first message that is not sealed as a whole."""
        offsets: dict[tuple[str, int], int] = {}
        for task, position in progress.values():
            topic, _, partition = task.ranges[0].path.rpartition("/")
            key = (topic, int(partition))
            offsets[key] = max(offsets.get(key, 0), position.part)
        if offsets:
            self._cluster.commit(group, offsets)

    @property
    def offset_unit(self) -> str:
        return "messages" if self.options.format == "arrow-ipc" else "rows"

    def lag(self, group: str) -> list[PartitionLag]:
        """What was never committed counts from the first record on, markers of transactions too."""
        topic = self._cluster.topic(self.options.topic)
        if topic is None:
            return []
        committed = self._cluster.committed(group, topic)
        firsts, ends = self._cluster.first_offsets(topic), self._cluster.stable_ends(topic)
        stretches = [
            Stretch(topic.name, each, max(firsts[each], committed.get(each, 0)), ends[each].offset)
            for each in topic.partitions
        ]
        behind = sorted(
            (each for each in stretches if each.first < each.end),
            key=lambda each: each.first - each.end,
        )
        access = replace(self.access, fetch_seconds=_LOOK_SECONDS)
        with closing(Reader(access, _LOOK_BYTES)) as reader:
            oldest = {each.partition: _first_time(reader, each) for each in behind[:_LOOKED_AT]}
        return [
            PartitionLag(
                str(each.partition), max(0, each.end - each.first), oldest.get(each.partition)
            )
            for each in stretches
        ]

    def close(self) -> None:
        self._cluster.close()

    def _decoder(self, columns: Sequence[str]) -> Decoder:
        limits = MessageLimits(self.options.message_rows_max, self.options.message_bytes_max)
        return decoder_named(
            self.options.format, columns, self.spec.columns, limits, self._written()
        )

    def _written(self) -> Written | None:
        options = self.options
        files: dict[int | None, Path] = {
            number: self.root / path for number, path in options.schema_ids.items()
        }
        if options.schema_file:
            files = {None: self.root / options.schema_file}
        return Written(files, options.message_type or "") if files else None

    def _described(self, values: Sequence[bytes]) -> dict[str, str]:
        decoder = self._decoder([])
        return {name: each for value in values for name, each in decoder.described(value).items()}

    def _bad(self, columns: Sequence[str], values: Sequence[bytes]) -> dict[int, str]:
        """Messages that these columns cannot be read of, or not in each row, and why."""
        found: dict[int, str] = {}
        for decoded in self._decoder(columns).decode(values):
            for row, reason in decoded.bad_rows.items():
                found.setdefault(int(decoded.messages[row]), reason)
            found |= decoded.bad_messages
        return found

    def _sample(self, topic: Topic) -> list[tuple[bytes, int]]:
        """The newest messages of the first partition that has some, with their timestamps."""
        firsts, ends = self._cluster.first_offsets(topic), self._cluster.stable_ends(topic)
        for partition in topic.partitions:
            whole = Stretch(topic.name, partition, firsts[partition], ends[partition].offset)
            found = [
                (value, stamp)
                for each in self._newest(whole)
                for value, stamp in zip(each.values, each.timestamps, strict=True)
                if value is not None
            ]
            if found:
                return found
        return []

    def _newest(self, whole: Stretch) -> Iterator[Messages]:
        first = max(whole.first, whole.end - _SAMPLE_MESSAGES)
        return read_messages(self.access, whole.between(first, whole.end))

    def _no_topic(self) -> str:
        names = self._cluster.topic_names()
        guess = nearest(self.options.topic, names)
        shown = ", ".join(names[:_TOPICS_SHOWN])
        known = f"its topics are {shown}" if names else "it has no topics"
        way_out = f"did you mean {guess!r}?" if guess else known
        return f"there is no topic {self.options.topic!r} at {self.options.bootstrap}: {way_out}"
