"""`forebay preview SOURCE`: what is stored there, or why nothing matched."""

from __future__ import annotations

import itertools
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forebay.commands.shared import arguments
from forebay.commands.shared.live_line import working
from forebay.commands.shared.output import Form, Output, OutputFormat, instant, option
from forebay.config.specs.datasets import source_of
from forebay.errors import ConfigError, DataError, NotReadyError

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from forebay.config.specs.sources import SourceSpec
    from forebay.datatasks.sources.common.contract.base import Description, Source

# Wide enough for any data; nanosecond clocks begin and end outside it too.
_EVER = (datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC))
_PARTITIONS_SHOWN = 8
_CHUNKS_MAX = 8  # that are read until there are rows to show


def preview(
    source: arguments.UseName,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    rows: Annotated[int, option("--rows", help="How many rows to show.", min=0, max=1000)] = 5,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Show a source's schema, partitions and first rows.

    The stored schema is shown beside the declared one, with the age of the newest rows. Exits with
    1 if the declaration has to be changed, 2 if nothing is there yet, 3 if the data is bad.
    """
    source = source_of(source)  # accepts the names that `why` shows, which are of the same rows
    with working(f"reading source {source}"):
        from forebay.config.load import load_project
        from forebay.datatasks.look.lags import newest_problem
        from forebay.datatasks.planning.open_source import open_source
        from forebay.datatasks.sources.common.contract.base import Describes, Description

        project = load_project(config)
        spec = project.source(source).model_copy(update={"bad_rows": "dead_letter"})
        with closing(open_source(spec, project.root)) as opened:
            found, wrong = Description({}), list[str]()
            if isinstance(opened, Describes):
                found = opened.describe()
                wrong = [] if found.empty_reason else [each.message for each in opened.findings()]
            # Rows can be shown only if declaration and storage agree.
            read = _first_rows(opened, rows) if not (found.empty_reason or wrong) else ([], [])
            far = newest_problem(spec, found, datetime.now(UTC)) if opened.bounded else ""
            mismatch = bool(wrong)
            wrong += [f"the time of its newest row is wrong ({far})"] if far else []
    shown = Output(output)
    facts = _facts(spec, found, wrong, *read)
    if shown.is_json:
        shown.json(facts)
    else:
        _print(shown, facts)
    if found.empty_reason:
        raise NotReadyError(f"source {source!r}: {found.empty_reason}")
    if wrong:
        raise typer.Exit(ConfigError.exit_code if mismatch else DataError.exit_code)


def _first_rows(source: Source, count: int) -> tuple[list[dict[str, Any]], list[str]]:
    """The first rows in declared types, and the reasons for dead rows among them."""
    from forebay.config.specs.windows import Interval
    from forebay.datatasks.tasks import DataTask

    span = Interval(source.spec.starts or _EVER[0], source.spec.ends or _EVER[1])
    tasks = source.scan([span]).tasks
    columns = list(source.spec.columns)
    if not tasks.num_rows or not count:
        return [], []
    name = source.spec.name
    chunks = (
        chunk
        for row in tasks.slice(0, _CHUNKS_MAX).to_pylist()
        for chunk in source.open(
            DataTask.of_row(row, f"{name}/0", name, "preview", span), None, columns, max(count, 64)
        )
    )
    shown: list[dict[str, Any]] = []
    dead: list[str] = []
    for chunk in itertools.islice(chunks, _CHUNKS_MAX):
        shown += _rows_of(chunk.batch.slice(0, count - len(shown)))
        dead += [row.reason for row in chunk.dead]
        if len(shown) >= count:
            break
    return shown, dead


def _rows_of(batch: RecordBatch) -> list[dict[str, Any]]:
    from forebay.datatasks.sources.common.values.far_times import shown_time
    from forebay.datatasks.sources.common.values.times import is_time

    columns = [
        map(shown_time, each.cast("int64").to_pylist()) if is_time(each.type) else each.to_pylist()
        for each in batch.columns
    ]
    return [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


def _facts(
    spec: SourceSpec,
    found: Description,
    wrong: list[str],
    rows: list[dict[str, Any]],
    dead: list[str],
) -> dict[str, Any]:
    columns = [
        {"column": name, "declared": str(declared), "stored": found.columns.get(name)}
        for name, declared in spec.columns.items()
    ]
    others = [name for name in found.columns if name not in spec.columns]
    columns += [{"column": n, "declared": None, "stored": found.columns[n]} for n in others]
    return {
        "source": spec.name,
        "kind": spec.kind,
        "columns": columns,
        "partitions": found.partitions,
        "newest": found.newest,
        "empty_reason": found.empty_reason,
        "problems": wrong,
        "dead": dead,
        "rows": [{key: _plain(value) for key, value in row.items()} for row in rows],
    }


def _plain(value: object) -> object:
    return value if isinstance(value, (datetime, int, float, list, type(None))) else str(value)


def _print(shown: Output, facts: dict[str, Any]) -> None:
    shown.line(f"source      {facts['source']} (kind {facts['kind']})")
    if facts["empty_reason"]:
        shown.line(f"nothing     {facts['empty_reason']}")
        return
    partitions = facts["partitions"]
    more = f" and {len(partitions) - _PARTITIONS_SHOWN} more" * (
        len(partitions) > _PARTITIONS_SHOWN
    )
    if partitions:
        shown.line(f"partitions  {', '.join(partitions[:_PARTITIONS_SHOWN])}{more}")
    if facts["newest"] is not None:
        shown.line(f"newest      {instant(facts['newest'])} ({_age(facts['newest'])})")
    for problem in facts["problems"]:
        shown.line(f"problem     {problem}")
    for reason in facts["dead"][:3]:
        shown.line(f"dead row    {reason}")
    shown.line()
    shown.table(facts["columns"], ("column", "declared", "stored"))
    if facts["rows"]:
        shown.line()
        # As stored: an id with a thousands separator would be a different id.
        rows = [
            {key: str(value) if type(value) is int else value for key, value in row.items()}
            for row in facts["rows"]
        ]
        shown.table(rows, list(rows[0]))


def _age(newest: datetime) -> str:
    from forebay.config.specs.base import duration_words

    age = datetime.now(UTC) - newest
    return "in the future" if age.total_seconds() < 0 else f"{duration_words(age)} ago"
