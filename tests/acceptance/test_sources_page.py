"""docs/sources.md from top to bottom: each file is written and used, each command is called."""

from __future__ import annotations

import io
import json
import os
import re
import runpy
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from support.projects import DAY
from support.record_files import WRITERS, compressed
from support.s3_server import S3Server

from forebay.cli import run
from forebay.config.specs.registry import kind_names
from forebay.config.yaml.environment import fill_text
from forebay.datatasks.sources.log.writer import LogWriter

# What the page has for the root of the project.
ROOT = "/srv/shop"
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "SHOP_KAFKA_PASSWORD")
PAGE = Path("docs/sources.md").read_text()
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
        return dict(yaml.safe_load(self.text))

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
    times = [day + timedelta(hours=hour, minutes=7) for hour in hours]
    return pa.table(
        {
            "id": [DAYS.index(day) * 1000 + hour for hour in hours],
            "at": pa.array(times, pa.timestamp("us", "UTC")),
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
            LogWriter(Path(options["path"]), 0).append(clicks(day), day + DAY - timedelta(hours=1))
        else:
            _write_files(declared["kind"], options, day, client)


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


def _write_files(kind: str, options: dict[str, Any], day: datetime, client: Any) -> None:
    """A file for each hour or day that paths tell apart, with a marker but on the last day."""
    rows, pattern = clicks(day), options.get("window_path", f"{day:%Y%m%d}/*.{kind}")
    ending = pattern.rpartition("/*.")[2]

    def content(part: pa.Table) -> bytes:
        if kind != "parquet":
            return compressed(WRITERS[kind](part), ".gz" if ending.endswith(".gz") else "")
        sink = io.BytesIO()
        pq.write_table(part, sink)
        return sink.getvalue()

    hourly = "{hour}" in pattern
    for hour in range(ROWS if hourly else 1):
        part = rows.slice(hour, 1) if hourly else rows
        folder = pattern.rpartition("/")[0].format(date=f"{day:%Y-%m-%d}", hour=f"{hour:02d}")
        files = {f"{options['path']}/{folder}/clicks.{ending}": content(part)}
        if day != DAYS[-1]:
            files[f"{options['path']}/{folder}/_SUCCESS"] = b""
        for path, stored in files.items():
            if "://" in path:
                key = path.removeprefix(f"s3://{BUCKET}/")
                client.put_object(Bucket=BUCKET, Key=key, Body=stored)
            else:
                Path(path).parent.mkdir(parents=True, exist_ok=True)
                Path(path).write_bytes(stored)


WITHOUT_BROKER = [block for block in blocks() if not block.on_kafka]
ON_KAFKA = [block for block in blocks() if block.on_kafka]


@dataclass
class Reader:
    root: Path
    capsys: pytest.CaptureFixture[str]
    stored: Callable[[Block], None] = lambda _: None
    later: list[Block] = field(default_factory=list)

    def follow(self, block: Block) -> None:
        """Write the file, or call the commands. stored: what makes rows for a new source."""
        language, _, more = block.mark.partition(" ")
        if block.file:
            block.write()
            if block.file.startswith("config/sources/") and not block.title.startswith("Add to "):
                self.stored(block)
        elif language == "console":
            code = int(more.removeprefix("exit ")) if more.startswith("exit ") else 0
            for command, shown in commands(block.text):
                self.call(command, shown, code)
        elif block.mark == "text why":
            self.later.append(block)  # it is about a pipeline further down
        else:
            raise AssertionError(f"nobody executes this block: {block}")

    def call(self, command: str, shown: list[str], code: int = 0) -> None:
        program, *arguments = shlex.split(command)
        self.capsys.readouterr()
        if program == "python":
            runpy.run_path(arguments[0])
            return
        assert program == "forebay"
        ended = run(arguments)
        printed = self.capsys.readouterr()
        text = (printed.out + printed.err).replace(str(self.root), ROOT)
        assert ended == code, f"$ {command}\n{text}"
        lines = [" ".join(line.split()) for line in text.splitlines()]
        assert [line for line in shown if " ".join(line.split()) not in lines] == [], text


@pytest.fixture
def reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Reader:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path / ".forebay"))
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    return Reader(tmp_path, capsys)


@pytest.fixture
def lake(s3_server: S3Server, s3_access: None, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The page's bucket, whose keys are in variables of its own."""
    s3_server.client.create_bucket(Bucket=BUCKET)
    named = {"LAKE_ENDPOINT": f"http://{s3_server.endpoint}", "LAKE_KEY": "lake-user"}
    for name, value in {**named, "LAKE_SECRET": "lake-secret"}.items():
        monkeypatch.setenv(name, value)
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    return s3_server


@pytest.mark.usefixtures("jobs_here")
@pytest.mark.timeout(600)
def test_the_page_from_top_to_bottom(lake: S3Server, reader: Reader) -> None:
    reader.stored = lambda block: store(block.declared, dict(os.environ), lake.client)
    for block in WITHOUT_BROKER:
        reader.follow(block)
    (why,) = reader.later
    reader.call("forebay why shop 2026-03-02", why.text.splitlines())
    runpy.run_path("test_clicks.py")["test_preview"]()
    (window,) = json.loads(Path("shop.json").read_text())["windows"]
    found = {name: source["trained_rows"] for name, source in window["sources"].items()}
    assert found == {
        path.stem: ROWS + (path.stem == "clicks_log")
        for path in Path("config/sources").glob("*.yaml")
    }
    assert window["sources"]["clicks_log"]["dead_letter_rows"] == 2


@pytest.mark.kafka
def test_the_topics_of_the_page(
    reader: Reader, kafka_bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forebay.datatasks.sources.kafka.producer import create_topic, publish

    monkeypatch.setenv("KAFKA_BOOTSTRAP", kafka_bootstrap)
    for block in ON_KAFKA:
        if block.mark == "json":
            topic = block.title.partition("`")[2].rstrip("`")
            create_topic(kafka_bootstrap, topic, 1)
            publish(kafka_bootstrap, topic, [(block.text.strip().encode(), DAYS[0], 0)])
        else:
            reader.follow(block)


def test_each_block_is_executed_and_each_kind_has_one() -> None:
    """`follow` refuses a block that it does not know, so that none is only looked at."""
    assert WITHOUT_BROKER
    assert ON_KAFKA
    assert len(blocks()) == PAGE.count("\n```") / 2
    declared = [block.declared for block in blocks() if block.mark == "yaml"]
    assert {each["kind"] for each in declared if "kind" in each} == set(kind_names())
    used = {"config", *re.findall(r"--config\W+(\w+)", PAGE)}
    assert {Path(block.file).parts[0] for block in blocks() if block.mark == "yaml"} == used
    consoles = [block for block in blocks() if block.mark.startswith("console")]
    called = {command for block in consoles for command, _ in commands(block.text)}
    scripts = {block.file for block in blocks() if block.mark == "python"} - {"test_clicks.py"}
    assert {f"python {script}" for script in scripts} <= called
