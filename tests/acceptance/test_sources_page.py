"""docs/sources.md from top to bottom: each file is written and used, each command is called."""

from __future__ import annotations

import json
import os
import re
import runpy
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.s3_server import S3Server
from support.sources_page import BUCKET, DAYS, PAGE, ROWS, Block, blocks, commands, store

from forebay.cli import run
from forebay.config.specs.registry import kind_names

# What the page has for the root of the project.
ROOT = "/srv/shop"
WITHOUT_BROKER = [block for block in blocks() if not block.on_kafka]
ON_KAFKA = [block for block in blocks() if block.on_kafka]
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL", "SHOP_KAFKA_PASSWORD")


@dataclass
class Reader:
    """Somebody who does what the page says, in an empty folder."""

    root: Path
    capsys: pytest.CaptureFixture[str]
    stored: Callable[[Block], None] = lambda _: None
    done: list[Block] = field(default_factory=list)
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
        self.done.append(block)

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


@pytest.mark.timeout(600)
def test_the_page_from_top_to_bottom(lake: S3Server, reader: Reader) -> None:
    reader.stored = lambda block: store(block.declared, dict(os.environ), lake.client)
    for block in WITHOUT_BROKER:
        reader.follow(block)
    assert reader.done == WITHOUT_BROKER
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
