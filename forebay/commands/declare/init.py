"""`forebay init DIR`: a project with an example, or with a source from files that are there."""

from __future__ import annotations

import json
import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from forebay.commands.shared.output import Output, OutputFormat, note, option
from forebay.config.scaffold import (
    StoredColumn,
    event_time_of,
    example_files,
    folder_source,
    project_files,
    source_name,
    usable,
)
from forebay.config.schema import SchemaFor, json_schema
from forebay.config.specs.registry import installed_kinds, kind_named
from forebay.config.specs.sources import LIST_ITEMS, ColumnType, SourceSpec
from forebay.errors import DataError, UsageError
from forebay.system.files.durable import writing
from forebay.system.names import shown

if TYPE_CHECKING:
    import pyarrow as pa

FIRST_DAY = datetime(2026, 3, 1, tzinfo=UTC)
DAYS = 3
ROWS_OF_A_DAY = 2_000
DATA = "data/example"
_USERS, _ITEMS, _SEED = 200, 30, 7


def write_example_rows(project: Path) -> list[Path]:
    """Parquet files of clicks, one for each day; the same rows each time. Returns their paths.

    Raises InfrastructureError when they cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    written = []
    for day in range(DAYS):
        start = FIRST_DAY + day * timedelta(days=1)
        path = project / DATA / f"date={start:%Y-%m-%d}" / "rows.parquet"
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pydict(_example_columns(start, day)), path)
        written.append(path)
    return written


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


_KINDS = ("parquet", "json", "csv", "tfrecord")
_DATE_FOLDER = re.compile(r"^([^={}]+)=\d{4}-\d{2}-\d{2}$")
_LIST_TYPES = {item: kind for kind, item in LIST_ITEMS.items()}


def init(
    folder: Annotated[Path, typer.Argument(help="Folder of the project.", metavar="DIR")],
    origin: Annotated[
        str | None,
        option(
            "--from",
            help="Write a source for this file or folder.",
            metavar="URL",
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

    --from parquet://PATH adds a source; PATH is relative to the current folder or absolute.
    json://, csv:// and tfrecord:// do the same for such files.
    """
    if name is not None and origin is None:
        raise UsageError(f"--name {shown(name)} names the source of --from: add --from URL")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder: name one for the project")
    files = project_files(folder.absolute().name)
    notes: list[str] = []
    if origin is not None:
        kind, data = _local_path(origin)
        file = f"config/sources/{source_name(name or data.stem)}.yaml"
        if (folder / file).exists():
            raise UsageError(f"{folder / file} already exists: choose another --name")
        files[file] = _source(kind, data, folder, notes)
    is_new = origin is None and not any((folder / "config").rglob("*.yaml"))
    files |= (example_files() if is_new else {}) | _schemas()
    output = Output(OutputFormat.TEXT)
    for path, text in files.items():
        target = folder / path
        if target.exists():
            output.line(f"kept     {target}")
            continue
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text)
        output.line(f"written  {target}")
    if is_new and not (folder / DATA).exists():
        for rows in write_example_rows(folder):
            output.line(f"written  {rows}")
    for line in notes:
        note(line)


def _schemas() -> dict[str, str]:
    kinds = installed_kinds()
    of: tuple[SchemaFor, ...] = ("source", "pipeline")
    return {
        f"schema/{each}.json": json.dumps(json_schema(kinds, each), indent=2) + "\n" for each in of
    }


def _local_path(origin: str) -> tuple[str, Path]:
    kind, scheme, place = origin.partition("://")
    if not scheme or kind not in _KINDS:
        ways = ", ".join(f"{each}://PATH" for each in _KINDS)
        raise UsageError(f"--from {shown(origin)}: write {ways}: a local file or folder")
    path = Path(place)
    if "\0" in origin or not path.exists():
        raise UsageError(f"--from {shown(origin)}: {path.absolute()} does not exist")
    return kind, path


def _source(kind: str, data: Path, folder: Path, notes: list[str]) -> str:
    file, suffix = _first_file(data, kind)
    columns = _columns(file, kind)
    window_path = None
    kept, event_time = usable(columns), event_time_of(columns)
    if not kept:
        raise UsageError(f"{file}: no column has a type that can be declared")
    if event_time is None:
        window_path = _window_path(data, file, suffix)
        if window_path is None:
            raise UsageError(
                f"{file} has no timestamp column, and no folder such as date=2026-03-01 gives the "
                "time of its rows: it cannot be cut into windows"
            )
    else:
        notes.append(f"event_time is a guess: {event_time}, the first timestamp column")
    notes += [f"left out: {c.name!r} ({c.stored_as})" for c in columns if c not in kept]
    absolute, root = data.absolute(), folder.absolute()
    inside = absolute.is_relative_to(root)
    path = absolute.relative_to(root) if inside else absolute
    return folder_source(kind, path.as_posix(), columns, window_path)


def _first_file(data: Path, kind: str) -> tuple[Path, str]:
    """The first file of a kind, and the end of its name that says so."""
    from forebay.datatasks.sources.common.files.folder_kind import FolderKind
    from forebay.datatasks.sources.common.files.listing import is_hidden

    suffixes = cast("type[FolderKind]", kind_named(kind)).suffixes
    if data.is_file():
        return data, ""
    for path in sorted(data.rglob("*")):
        suffix = next((each for each in suffixes if path.name.endswith(each)), None)
        parts = path.relative_to(data).parts
        if suffix is not None and path.is_file() and not any(map(is_hidden, parts)):
            return path, suffix
    raise UsageError(f"{data} contains no *{suffixes[0]} file")


def _window_path(data: Path, file: Path, suffix: str) -> str | None:
    """`date={date}/*.parquet`, if a folder below `data` is named after a date."""
    folders = file.relative_to(data).parts[:-1] if data.is_dir() else ()
    matches = [_DATE_FOLDER.match(part) for part in folders]
    if not any(matches):
        return None
    parts = [f"{match[1]}={{date}}" if match else "*" for match in matches]
    return "/".join([*parts, f"*{suffix}"])


def _columns(file: Path, kind: str) -> list[StoredColumn]:
    from forebay.datatasks.planning.open_source import open_source
    from forebay.datatasks.sources.common.row_groups.folder import FolderSource

    spec = SourceSpec.model_validate(
        {
            "name": "example",
            "kind": kind,
            "options": {"path": str(file.absolute())},
            "columns": {"at": "timestamp"},
            "event_time": "at",
        }
    )
    source = cast("FolderSource", open_source(spec, Path("/")))
    (schema,) = source.read_schemas([file.name])
    if isinstance(schema, str):
        raise DataError(f"{file} is not a file of kind {kind}: {schema}")
    return [StoredColumn(field.name, str(field.type), _declared(field.type)) for field in schema]


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
