"""The blocks of docs/sources.md, and rows for the sources that they declare."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from forebay.config.yaml.environment import fill_text

PAGE = Path("docs/sources.md").read_text()
DAY = timedelta(days=1)
DAYS = (datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))
ROWS = 24  # of each source and day, one an hour
BUCKET = "lake"
_BLOCK = re.compile(
    r"(?:^\*\*(?P<title>[^\n]+)\*\*\n)?^```(?P<mark>[^\n]*)\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block. title: the bold line above it; mark: its language, and more for the test."""

    title: str
    mark: str
    text: str

    @property
    def file(self) -> str:
        """The file that the page says the block is, or is added to."""
        found = re.fullmatch(r"(?:Add to )?`([\w./]+\.(?:yaml|py))`", self.title)
        return found[1] if found else ""

    @property
    def declared(self) -> dict[str, Any]:
        found: dict[str, Any] = yaml.safe_load(self.text)
        return found

    @property
    def on_kafka(self) -> bool:
        if self.mark == "yaml":
            return self.declared.get("kind") == "kafka" and self.file.startswith("config/")
        return self.mark in {"console kafka", "json"} or "sources.kafka" in self.text

    def write(self) -> None:
        path = Path(self.file)
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text() if self.title.startswith("Add to ") else ""
        path.write_text(before + self.text)


def blocks() -> list[Block]:
    return [Block(each[1] or "", each[2], each[3]) for each in _BLOCK.finditer(PAGE)]


def commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a console block, and the lines that the page shows after it."""
    for example in text.removeprefix("$ ").split("\n$ "):
        command, *shown = example.splitlines()
        yield command, shown


def clicks(day: datetime) -> pa.Table:
    hours = range(ROWS)
    return pa.table(
        {
            "id": [DAYS.index(day) * 1000 + hour for hour in hours],
            "at": pa.array(
                [day + timedelta(hours=hour, minutes=7) for hour in hours],
                pa.timestamp("us", "UTC"),
            ),
            "user": [f"u{hour % 5}" for hour in hours],
            "country": [("DE", "FR", "US", None)[hour % 4] for hour in hours],
            "seconds": [float(hour) for hour in hours],
            "tags": [[f"t{n}" for n in range(hour % 3)] for hour in hours],
            "outcome": [("bought", "left")[hour % 2] for hour in hours],
            "spent": [(1 - hour % 2) * hour * 10.0 for hour in hours],
        }
    )


def store(declared: dict[str, Any], environment: dict[str, str], client: Any) -> None:
    """Put the rows of both days where a source of `config/` is declared to be.

    client: one of an S3 server, with the page's bucket.
    """
    options: dict[str, Any] = declared["options"]
    for day in DAYS:
        if declared["kind"] == "iceberg":
            _append(options, clicks(day), environment)
        elif declared["kind"] == "log":
            from forebay.datatasks.sources.log.writer import LogWriter

            LogWriter(Path(options["path"]), 0).append(clicks(day), day + DAY - timedelta(hours=1))
        else:
            _write_files(options, day, client)


def _append(options: dict[str, Any], rows: pa.Table, environment: dict[str, str]) -> None:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = {
        name: fill_text(value, (), environment)[0] for name, value in options["catalog"].items()
    }
    place = f"s3://{BUCKET}/tables" if "s3.endpoint" in catalog else f"file://{Path.cwd()}/data"
    opened = SqlCatalog(catalog.pop("name"), **{**catalog, "warehouse": place})
    try:
        opened.create_namespace_if_not_exists(options["table"].partition(".")[0])
        opened.create_table_if_not_exists(options["table"], rows.schema).append(rows)
    finally:
        opened.close()


def _write_files(options: dict[str, Any], day: datetime, client: Any) -> None:
    """A file for each hour or day that paths tell apart, with a marker but on the last day."""
    rows, pattern = clicks(day), options.get("window_path", f"{day:%Y%m%d}/*.parquet")
    hourly = "{hour}" in pattern
    write = _object_writer(client) if "://" in options["path"] else _file_writer
    for hour in range(ROWS if hourly else 1):
        part = rows.slice(hour, 1) if hourly else rows
        folder = pattern.rpartition("/")[0].format(date=f"{day:%Y-%m-%d}", hour=f"{hour:02d}")
        sink = io.BytesIO()
        pq.write_table(part, sink)
        write(f"{options['path']}/{folder}/clicks.parquet", sink.getvalue())
        if day != DAYS[-1]:
            write(f"{options['path']}/{folder}/_SUCCESS", b"")


def _file_writer(path: str, content: bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(content)


def _object_writer(client: Any) -> Callable[[str, bytes], None]:
    def write(url: str, content: bytes) -> None:
        client.put_object(Bucket=BUCKET, Key=url.removeprefix(f"s3://{BUCKET}/"), Body=content)

    return write
