"""Reads faulty data as a data executor does, and checks the result."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from forebay.config.specs.sources import SourceSpec
from forebay.config.specs.windows import Interval
from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.files.listing import Files
from forebay.datatasks.sources.formats.decoder import Decoder
from forebay.datatasks.sources.formats.decoders import decoder_named
from forebay.datatasks.sources.kafka.chunks import ChunkMaker
from forebay.datatasks.sources.kafka.read import Stretch
from forebay.datatasks.sources.kafka.wire import records
from forebay.datatasks.sources.kafka.wire.messages import Messages, messages_within
from forebay.datatasks.sources.log.read import LogReader
from forebay.datatasks.sources.log.writer import LogWriter
from forebay.datatasks.sources.parquet.footer_reader import FooterReader
from forebay.datatasks.tasks import Chunk, DataTask, Position, RowRange
from forebay.errors import ForebayError
from support.hostile.arrow_streams import Original, changed_stream, odd, plain, streams
from support.hostile.bytes_changed import Places, changed
from support.hostile.json_objects import changed_object
from support.hostile.record_batches import changed_batch, stored
from support.hostile.written import Messages as WrittenMessages
from support.hostile.written import changed_message, written_by
from support.message_columns import COLUMNS

DAY = Interval(datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))
Reader = Callable[[random.Random, Path], str]


def read_batch(chance: random.Random, _folder: Path) -> str:
    from kafka.errors import CorruptRecordError

    content = changed_batch(chance)
    try:
        found = list(_messages(content))
    except CorruptRecordError as error:
        return _reason(str(error))
    first = min((messages.runs[0].first for messages in found), default=0)
    decoder = _decoder(chance.choice(("arrow-ipc", "json")), chance.randrange(32))
    return _judged(chunks_of(decoder, found, first, 16))


def read_segment(chance: random.Random, folder: Path) -> str:
    path, original = chance.choice(_segments(folder))
    path.write_bytes(changed(original.content, original.places, chance))
    columns = chance.sample(list(COLUMNS), chance.randrange(len(COLUMNS) + 1))
    spec = _spec("log", {"path": "log"}, chance)
    files = Files("log", folder, {}, ".arrow")
    name = path.relative_to(folder / "log").as_posix()
    rows = int(path.name[21:29])
    task = task_of(name, rows, rows)
    return _refused_or(lambda: LogReader(spec, files).read(task, None, columns, 16))


def read_parquet(chance: random.Random, folder: Path) -> str:
    """A Parquet file, as a data executor has it: damaged after its window was planned."""
    rows, original = chance.choice(_parquet_files(folder))
    path = folder / "data" / "a.parquet"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(changed(original.content, original.places, chance))
    columns = chance.sample(list(COLUMNS), chance.randrange(len(COLUMNS) + 1))
    source = open_source(_spec("parquet", {"path": "data"}, chance, event_time="t"), folder)
    task = task_of("a.parquet", rows, rows - chance.randrange(2))
    try:
        # Texts of a file are not looked at.
        return _refused_or(lambda: source.open(task, None, columns, 16), are_texts=False)
    finally:
        source.close()


def read_footer(chance: random.Random, folder: Path) -> str:
    """The footer of a Parquet file, as whoever plans has it: parsed by a child that may die."""
    _, original = chance.choice(_parquet_files(folder))
    sound = original.content[:-8][-int.from_bytes(original.content[-8:-4], "little") :]
    found = changed(sound, _whole(sound).places, chance)
    content = found + len(found).to_bytes(4, "little") + b"PAR1"
    (answer,) = _footer_reader().read([""], lambda _: content, lambda _path, answer, _tail: answer)
    if isinstance(answer, str):
        return _reason(answer)
    assert answer.stored_schema or all(group[-1] in range(3) for group in answer.groups)
    return ""


@functools.cache
def _footer_reader() -> FooterReader:
    """One for all, as one plan has one for all of its files."""
    return FooterReader("t")


READERS: Mapping[str, Reader] = {
    # A message between sound ones, which are read whatever is in it.
    "arrow": lambda chance, _: _between(
        _decoder("arrow-ipc", chance.randrange(32)), changed_stream(chance), streams()[0].content
    ),
    "json": lambda chance, _: _between(
        _decoder("json", chance.randrange(32)), changed_object(chance), b'{"i": 1}'
    ),
    "avro": lambda chance, folder: _written_between(chance, "avro", folder),
    "protobuf": lambda chance, folder: _written_between(chance, "protobuf", folder),
    "record_batch": read_batch,
    "segment": read_segment,
    "parquet": read_parquet,
    "footer": read_footer,
}


@functools.cache
def _decoder(format_name: str, number: int, written: WrittenMessages | None = None) -> Decoder:
    """One of a few, since they remember what they have seen."""
    columns = random.Random(number).sample(list(COLUMNS), 1 + number % len(COLUMNS))
    return decoder_named(
        format_name, columns, COLUMNS, written=written.schemas if written else None
    )


def _written_between(chance: random.Random, format_name: str, folder: Path) -> str:
    found = written_by(format_name, folder, chance.random() < 0.5)
    value = changed_message(found, chance)
    return _between(_decoder(format_name, chance.randrange(32), found), value, found.sound)


def _between(decoder: Decoder, value: bytes, sound: bytes) -> str:
    rows = 0
    reason = ""
    for decoded in decoder.decode([sound, value, sound]):
        decoded.batch.validate(full=True)
        assert decoded.batch.schema.names == decoder.columns
        rows += int((decoded.messages != 1).sum())
        assert set(decoded.bad_messages) <= {1}, decoded.bad_messages
        for each in [*decoded.bad_messages.values(), *decoded.bad_rows.values()]:
            reason = _reason(each)
    assert rows == 2, "the sound messages are not read"
    return reason


def _messages(content: bytes) -> Iterable[Messages]:
    from kafka import TopicPartition

    hook = records._hook_class()(0, TopicPartition("clicks", 0), stored(content))
    position = -(2**62)
    for batch in hook.take():
        found = messages_within(batch.read(64 << 20), position, 2**62)
        if found is not None and found.runs:
            yield found
            position = found.end


def chunks_of(
    decoder: Decoder, found: Iterable[Messages], first: int, chunk_rows: int
) -> Iterable[Chunk]:
    maker = ChunkMaker(
        decoder=decoder,
        stretch=Stretch("clicks", 0, first, 2**62),
        task=task_of("clicks/0", 0, 0),
        start=Position(first, 0),
        policy="dead_letter",
        chunk_rows=chunk_rows,
    )
    return maker.chunks(found)


def _refused_or(chunks: Callable[[], Iterable[Chunk]], *, are_texts: bool = True) -> str:
    try:
        return _judged(chunks(), are_texts=are_texts)
    except ForebayError as error:
        return _reason(str(error))


def _judged(chunks: Iterable[Chunk], *, are_texts: bool = True) -> str:
    """The last reason of a dead row; empty when all rows were read."""
    reason = ""
    for chunk in chunks:
        chunk.batch.validate(full=are_texts)
        assert chunk.batch.num_rows == len(chunk.rows) == len(chunk.row_ids) <= 16
        for row in chunk.dead:
            reason = _reason(row.reason)
            assert row.location
            assert row.rows > 0
    return reason


def _reason(text: str) -> str:
    assert text.strip(), "a refusal without a reason"
    return text


def _spec(kind: str, options: dict[str, str], chance: random.Random, **more: str) -> SourceSpec:
    return SourceSpec.model_validate(
        {
            "name": "s",
            "kind": kind,
            "options": options,
            "columns": {name: str(each) for name, each in COLUMNS.items()},
            "bad_rows": chance.choice(("dead_letter", "dead_letter", "fail")),
            **more,
        }
    )


def task_of(path: str, end: int, rows: int) -> DataTask:
    """All of a file, of which so many rows are in the span. What it was before does not count."""
    whole = RowRange(path=path, first=0, end=end, rows=rows, size_bytes=1)
    return DataTask(
        task_id="s/0",
        source="s",
        window="2026-03-01",
        generation=1,
        hour=0,
        partition="0",
        ranges=(whole,),
        rows=rows,
        cut=False,
        data_from=DAY.start,
        data_to=DAY.start + timedelta(days=1),
    )


@functools.cache
def _segments(folder: Path) -> list[tuple[Path, Original]]:
    found = []
    for number, table in enumerate((plain(1), plain(40), odd(1), odd(40))):
        for compression in (None, "zstd", "lz4"):
            path = LogWriter(folder / "log", f"{number}-{compression}").append(table, DAY.start)
            assert path is not None
            options = pa.ipc.IpcWriteOptions(compression=compression)
            with pa.ipc.new_file(path, table.schema, options=options) as file:
                file.write_table(table, max_chunksize=16)
            found.append((path, _whole(path.read_bytes())))
    return found


@functools.cache
def _parquet_files(folder: Path) -> list[tuple[int, Original]]:
    path, found = folder / "sound.parquet", []
    forms = itertools.product((plain(1), plain(60)), ("none", "zstd", "snappy"), ("1.0", "2.0"))
    for table, compression, version in forms:
        pq.write_table(
            table.select(list(COLUMNS)),
            path,
            row_group_size=25,
            compression=compression,
            data_page_version=version,
            write_page_index=version == "2.0",
            use_dictionary=["s", "i"],
            store_schema=compression != "none",
        )
        found.append((table.num_rows, _whole(path.read_bytes())))
    return found


def _whole(content: bytes) -> Original:
    size = len(content)
    return Original(content, Places(range(0, size, 8), range(0, size, 4), range(size)))
