"""`forebay init DIR`: a project with an example, or with declarations for files that are there."""

from __future__ import annotations

import itertools
import json
import os
import random
import re
from contextlib import closing, suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from forebay.commands.shared.output import Output, OutputFormat, note, option
from forebay.config.scaffold import (
    StoredColumn,
    declared_source,
    event_time_of,
    guessed_pipeline,
    project_files,
    source_name,
    usable,
    window_path,
)
from forebay.config.schema import SchemaFor, json_schema
from forebay.config.specs.base import END_OF_INSTANTS, FIRST_INSTANT
from forebay.config.specs.registry import installed_kinds, kind_named
from forebay.config.specs.sources import LIST_ITEMS, ColumnType, SourceSpec
from forebay.errors import DataError, UsageError
from forebay.system.files.durable import new_file, write_atomically
from forebay.system.instants import from_us, to_us
from forebay.system.names import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from forebay.datatasks.sources.common.contract.base import Source
    from forebay.datatasks.sources.common.files.folder_kind import FolderKind
    from forebay.datatasks.sources.common.row_groups.folder import FolderSource
    from forebay.datatasks.sources.common.values.times import Times
    from forebay.datatasks.sources.kafka.source import KafkaSource

FIRST_DAY = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = 3
ROWS_OF_A_DAY = 2_000
DATA = "data/example"
_USERS, _ITEMS, _SEED = 200, 30, 7


def write_example_rows(project: Path) -> list[Path]:
    """Parquet files of clicks, one for each day; the same rows each time.

    Returns the paths of those that were not there.

    Raises:
        UsageError: when the folder holds a file of somebody else.
        InfrastructureError: when they cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = project / DATA
    starts = [FIRST_DAY + day * timedelta(days=1) for day in range(DAYS)]
    paths = [data / f"date={start:%Y-%m-%d}" / "rows.parquet" for start in starts]
    for other in _below(data) if data.exists() else ():
        if other not in paths:
            raise UsageError(f"{other} is not of the example: add --from {data}, or move it away")
    missing = [day for day, path in enumerate(paths) if not path.exists()]
    for day in missing:
        with new_file(paths[day]) as file:
            pq.write_table(pa.Table.from_pydict(_example_columns(starts[day], day)), file)
    return [paths[day] for day in missing]


def _example_columns(start: datetime, day: int) -> dict[str, list[object]]:
    """Rows of one day in the order of time: two items in three are clicked often."""
    chance = random.Random(_SEED + day)  # noqa: S311 - an example, no secret
    seconds = sorted(chance.random() * 86_400 for _ in range(ROWS_OF_A_DAY))
    users = [chance.randrange(_USERS) for _ in seconds]
    items = [chance.randrange(_ITEMS) for _ in seconds]
    return {
        "id": [day * ROWS_OF_A_DAY + number for number in range(ROWS_OF_A_DAY)],
        "at": [start + timedelta(seconds=round(each)) for each in seconds],
        "user": [f"u{user}" for user in users],
        "item": [f"i{item}" for item in items],
        "price": [round(chance.uniform(1, 50), 2) for _ in seconds],
        "clicked": [int(chance.random() < (0.4 if item % 3 else 0.05)) for item in items],
    }


_TOPIC = "kafka://"
_KINDS = ("parquet", "json", "csv", "tfrecord")
# What a declaration may name, in microseconds, and a bound on each side for all other times.
_FIRST, _END = to_us(FIRST_INSTANT), to_us(END_OF_INSTANTS)
_BOUNDS = (_FIRST - 1, _END + 1)
# Files whose times are read, and bytes of those that have no footer.
_FILES_MAX, _BYTES_MAX = 1_000, 1 << 30
_LIST_TYPES = {item: kind for kind, item in LIST_ITEMS.items()}


def init(
    folder: Annotated[Path, typer.Argument(help="Folder of the project.", metavar="DIR")],
    origin: Annotated[
        str | None,
        option(
            "--from",
            help="Write a source and a pipeline for this file, folder or topic.",
            metavar="PATH",
            variable="FOREBAY_INIT_FROM",
        ),
    ] = None,
    name: Annotated[
        str | None, option("--name", help="Name of that source (default: the file's name).")
    ] = None,
) -> None:
    """Start a project with an example that runs.

    Existing files are not changed. Editors use `schema/` to complete and check
    the YAML.

    --from PATH adds a source, and a pipeline where a column looks like a label. PATH is relative to
    the current folder or absolute, of Parquet, JSON, CSV or TFRecord files. The ends of their names
    say which, or KIND://PATH does: parquet, json, csv or tfrecord. kafka://HOST:PORT/TOPIC is a
    topic of JSON messages.

    The YAML is a guess by names, types and times: see that start, event_id, label and features are
    what you mean.
    """
    if name is not None and origin is None:
        raise UsageError(f"--name {shown(name)} names the source of --from: add --from PATH")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: name one for the project")
    folder = _straight(folder)
    files = project_files(folder.absolute().name) | _schemas()
    notes: list[str] = []
    output = Output(OutputFormat.TEXT)
    if origin is None and not any((folder / "config").rglob("*.yaml")):
        for rows in write_example_rows(folder):
            output.line(f"written  {rows}")
        files |= _declared_files(None, folder / DATA, folder, "example", notes)
    elif origin is not None and origin.startswith(_TOPIC):
        topic = origin.removeprefix(_TOPIC)
        named = source_name(name or topic.rpartition("/")[2])
        files |= _declared_topic(topic, folder, named, notes)
    elif origin is not None:
        kind, data = _local_path(origin)
        named = source_name(name or data.absolute().stem)
        files |= _declared_files(kind, data, folder, named, notes)
    for path, text in files.items():
        _write(folder / path, text, output)
    for line in notes if origin else ():
        note(line)


def _write(target: Path, text: str, output: Output) -> None:
    if target.exists():
        output.line(f"kept     {target}")
        return
    write_atomically(target, text)
    output.line(f"written  {target}")


def _schemas() -> dict[str, str]:
    kinds = installed_kinds()
    of: tuple[SchemaFor, ...] = ("source", "pipeline")
    return {
        f"schema/{each}.json": json.dumps(json_schema(kinds, each), indent=2) + "\n" for each in of
    }


def _local_path(origin: str) -> tuple[str | None, Path]:
    """The kind of files, where it is written, and where they are."""
    kind, scheme, place = origin.partition("://")
    if scheme and kind not in _KINDS:
        ways = ", ".join(f"{each}://PATH" for each in _KINDS)
        ways = f"PATH, {ways}, or a topic: {_TOPIC}HOST:PORT/TOPIC"
        raise UsageError(f"--from {shown(origin)}: name a local file or folder: {ways}")
    path = Path(place if scheme else origin)
    if "\0" in origin or not path.exists():
        raise UsageError(f"--from {shown(origin)}: {path.absolute()} does not exist")
    return kind if scheme else None, _straight(path)


def _straight(path: Path) -> Path:
    """Without `..`. Links after it stay: they may lead elsewhere later."""
    ups = [place for place, part in enumerate(path.parts, 1) if part == ".."]
    if not ups:
        return path
    return Path(*path.parts[: ups[-1]]).resolve().joinpath(*path.parts[ups[-1] :])


def _declared_files(
    written: str | None, data: Path, folder: Path, name: str, notes: list[str]
) -> dict[str, str]:
    """The YAML of a source, and of a pipeline if one can be guessed, by relative path."""
    _require_new(folder, name)
    kind, files = _files(data, written)
    columns = next(filter(None, (_columns(kind, file) for file in files)), [])
    event_time = event_time_of(columns)
    _require_usable(columns, str(files[0]))
    pattern, days = _by_path(kind, data, files)
    if event_time is None and pattern is None:
        raise UsageError(
            f"{files[0]} has no timestamp column, and no folder such as date=2026-03-01 gives the "
            "time of its rows: it cannot be cut into windows"
        )
    absolute, root = data.absolute(), folder.absolute()
    inside = absolute.is_relative_to(root)
    path = (absolute.relative_to(root) if inside else absolute).as_posix()
    if re.search(r"[{*?\[]", path):
        raise UsageError(f"{path}: a path with {{, *, ? or [ is read as a pattern: rename it")
    looked_at = files
    if pattern is None:
        looked_at = _looked_at(kind, files)
        days = _days_of(kind, looked_at, str(event_time))
    start, end = _ends(days, f"{data}: no {'row' if pattern is None else 'path'}")
    is_whole = len(looked_at) == len(files)
    guessed = guessed_pipeline(name, columns, start, end if is_whole else None)
    if pattern is not None:
        notes.append(f"window_path is a guess: {pattern}, by the names of folders, in UTC")
    if guessed is not None and not is_whole:
        notes.append(
            f"start is a guess by {len(looked_at):,} of {len(files):,} files: rows before it are "
            "not trained"
        )
    options = {"path": path} | ({} if pattern is None else {"window_path": pattern})
    return _texts(name, declared_source(kind, options, columns), guessed, columns, notes)


def _declared_topic(place: str, folder: Path, name: str, notes: list[str]) -> dict[str, str]:
    """The same of a topic, by its newest messages."""
    from forebay.datatasks.sources.records.json_lines import JsonLines
    from forebay.datatasks.sources.records.kind import JsonKind

    _require_new(folder, name)
    bootstrap, _, topic = place.rpartition("/")
    if not bootstrap or not topic:
        raise UsageError(f"--from {_TOPIC}{shown(place)}: write {_TOPIC}HOST:PORT/TOPIC")
    options = {"bootstrap": bootstrap, "topic": topic, "format": "json"}
    with closing(cast("KafkaSource", _opened("kafka", options, folder))) as source:
        values, first = source.newest_values(), source.first_whole_day()
    try:
        schema = JsonLines([], {}, JsonKind.Options(path=".")).stored_schema(values)
    except ValueError as error:  # such as names that are no texts
        raise DataError(f"topic {topic} has a message that is no JSON row: {error}") from error
    columns = [StoredColumn(each.name, str(each.type), _declared(each.type)) for each in schema]
    _require_usable(columns, f"topic {topic}")
    start, _ = _ends([first] if first else [], f"topic {topic}: no record")
    notes.append(f"columns are a guess by {len(values)} messages: see that they are all")
    guessed = guessed_pipeline(name, columns, start)
    return _texts(name, declared_source("kafka", options, columns), guessed, columns, notes)


def _require_new(folder: Path, name: str) -> None:
    if (source := folder / f"config/sources/{name}.yaml").exists():
        raise UsageError(f"{source} already exists: choose another --name")


def _require_usable(columns: list[StoredColumn], where: str) -> None:
    if not usable(columns):
        raise UsageError(f"{where}: no column has a type that can be declared")


def _texts(
    name: str, source: str, pipeline: str | None, columns: list[StoredColumn], notes: list[str]
) -> dict[str, str]:
    """What is written, by relative path, and notes on what was guessed."""
    kept, event_time = usable(columns), event_time_of(columns)
    if event_time is not None:
        notes.append(f"event_time is a guess: {event_time}, the first timestamp column")
    notes += [f"left out: {c.name!r} ({c.stored_as})" for c in columns if c not in kept]
    way_out = "see that start, event_id, label and features are what you mean"
    if pipeline is None:
        way_out = "none is written: no column looks like a label (a bool, or one named `clicked`)"
    notes.append(f"pipeline {name}: {way_out}")
    found = {f"config/sources/{name}.yaml": source}
    return found if pipeline is None else found | {f"config/pipelines/{name}.yaml": pipeline}


def _ends(days: list[date], none: str) -> tuple[date, date | None]:
    """The first of these days, and the one after the last; None if more may come."""
    first, end = FIRST_INSTANT.year, END_OF_INSTANTS.year
    days = [day for day in days if first <= day.year < end]
    if not days:
        raise UsageError(
            f"{none} has a time of the years {first} to {end - 1}: it cannot be cut into windows"
        )
    is_over = max(days) < datetime.now(UTC).date() - timedelta(days=1)
    return min(days), max(days) + timedelta(days=1) if is_over else None


def _suffixes(kind: str) -> tuple[str, ...]:
    return cast("type[FolderKind]", kind_named(kind)).suffixes


def _files(data: Path, written: str | None) -> tuple[str, list[Path]]:
    """The kind of a source at this path, and the files that it reads, in order."""
    ends = {kind: _suffixes(kind) for kind in ([written] if written else _KINDS)}
    if data.is_file():
        named = (kind for kind, each in ends.items() if data.name.endswith(each))
        return written or next(named, _KINDS[0]), [data]
    every = tuple(itertools.chain(*ends.values()))
    below = [path for path in _below(data) if path.name.endswith(every)]
    found = {kind: [p for p in below if p.name.endswith(each)] for kind, each in ends.items()}
    there = [kind for kind, files in found.items() if files]
    if not there:
        wanted = " or ".join(f"*{each[0]}" for each in ends.values())
        raise UsageError(f"{data} contains no {wanted} file")
    if len(there) > 1:
        ways = " or ".join(f"{kind}://{data}" for kind in there)
        raise UsageError(f"{data} contains files of several kinds: write {ways}")
    return there[0], found[there[0]]


def _below(folder: Path) -> list[Path]:
    """The files that a source of this folder would see, in order."""
    from forebay.datatasks.sources.common.files.listing import files_below, is_hidden
    from forebay.datatasks.sources.common.files.remote import answering

    with answering(str(folder)):
        found = [Path(entry.path) for entry in files_below(str(folder), is_hidden)]
    return sorted(path for path in found if path.is_file() and not is_hidden(path.name))


def _by_path(kind: str, data: Path, files: list[Path]) -> tuple[str | None, list[date]]:
    """The pattern of all paths, if their folders name a time, and the day of each."""
    from forebay.datatasks.sources.common.files.patterns import time_pattern

    folders = files[0].relative_to(data).parts[:-1] if data.is_dir() else ()
    ends = {end for end in _suffixes(kind) for file in files if file.name.endswith(end)}
    pattern = window_path(folders, f"*{ends.pop()}" if len(ends) == 1 else "*")
    if pattern is None:
        return None, []
    regex = re.compile(time_pattern(pattern).regex)
    days: list[date] = []
    for file in files:
        match = regex.fullmatch(file.relative_to(data).as_posix())
        with suppress(ValueError):  # no day of the calendar: the folders mean something else
            days += [date(*map(int, match.group("Y", "m", "d")))] if match else []
    return (pattern, days) if len(days) == len(files) else (None, [])


def _looked_at(kind: str, files: list[Path]) -> list[Path]:
    """All files, or as many as are read in short time, spread evenly."""
    has_footers = _of_files(kind, files[0].absolute().parent, "at").has_footers
    size = 0 if has_footers else sum(file.stat().st_size for file in files)
    count = int(min(_FILES_MAX, len(files), len(files) * _BYTES_MAX / max(size, 1)))
    last = len(files) - 1
    if count > last or last < 2:
        return files
    steps = max(count, 2) - 1
    return [files[place * last // steps] for place in range(steps + 1)]


def _days_of(kind: str, files: list[Path], event_time: str) -> list[date]:
    """The days (UTC) of the first and the last event that a declaration can name, if any."""
    import numpy as np

    from forebay.datatasks.sources.common.files.listing import READ_ERRORS
    from forebay.datatasks.sources.common.row_groups.states import KNOWN, TO_READ

    folder = Path(os.path.commonpath([file.absolute().parent for file in files]))
    source = _of_files(kind, folder, event_time)
    paths = [file.absolute().relative_to(folder).as_posix() for file in files]
    found: list[int] = []
    with closing(source), closing(source.planner()) as planner:
        for path, footer in zip(paths, source.read_footers(paths), strict=True):
            if isinstance(footer, str):
                raise DataError(f"{folder / path} cannot be read: {footer}")
            known = footer.state == KNOWN
            fits = known & (footer.low >= _FIRST) & (footer.high < _END)
            to_read = np.flatnonzero((footer.state == TO_READ) | (known & ~fits))
            try:
                read = [_ends_of(planner.group_times(path, g, _BOUNDS)) for g in to_read.tolist()]
            except READ_ERRORS as error:
                raise DataError(f"{folder / path} cannot be read: {error}") from error
            found += _ends_of(np.concatenate([footer.low[fits], footer.high[fits], *read])).tolist()
    return [from_us(each).date() for each in found]


def _ends_of(times: Times) -> Times:
    """The first and the last time that a declaration can name, if any."""
    times = times[(times >= _FIRST) & (times < _END)]
    return times[[times.argmin(), times.argmax()]] if len(times) else times


def _columns(kind: str, file: Path) -> list[StoredColumn]:
    (schema,) = _of_files(kind, file.absolute().parent, "at").read_schemas([file.name])
    if isinstance(schema, str):
        raise DataError(f"{file} is not a file of kind {kind}: {schema}")
    return [StoredColumn(field.name, str(field.type), _declared(field.type)) for field in schema]


def _of_files(kind: str, folder: Path, event_time: str) -> FolderSource:
    return cast("FolderSource", _opened(kind, {"path": "."}, folder, event_time))


def _opened(
    kind: str, options: dict[str, str], folder: Path, event_time: str | None = None
) -> Source:
    from forebay.datatasks.planning.open_source import open_source

    spec = SourceSpec.model_validate(
        {
            "name": "example",
            "kind": kind,
            "options": options,
            "columns": {event_time or "at": "timestamp"},
            "event_time": event_time,
        }
    )
    return open_source(spec, folder)


def _declared(stored: pa.DataType) -> ColumnType | None:
    """The declared type for a stored type; None if it would be a guess."""
    from pyarrow import types

    if types.is_dictionary(stored):
        return _declared(stored.value_type)
    if types.is_list(stored) or types.is_large_list(stored) or types.is_fixed_size_list(stored):
        item = _declared(stored.value_type)
        return _LIST_TYPES.get(item) if item is not None else None
    tests = {
        ColumnType.STRING: (types.is_string, types.is_large_string),
        ColumnType.INT: (types.is_integer,),
        ColumnType.FLOAT: (types.is_floating, types.is_decimal),
        ColumnType.BOOL: (types.is_boolean,),
        ColumnType.TIMESTAMP: (types.is_timestamp, types.is_date),
    }
    return next((kind for kind, known in tests.items() if any(t(stored) for t in known)), None)
