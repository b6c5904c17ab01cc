"""docs/kafka.md: its first declaration reads what its example publishes, both as written."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.written_messages import descriptor_set, protobuf_fields

from forebay import cli
from forebay.config.specs.sources import ColumnType
from forebay.datatasks.sources.kafka.client import Cluster

PAGE = Path("docs/kafka.md").read_text()
COLUMNS = {"user": ColumnType.STRING, "price": ColumnType.FLOAT, "at": ColumnType.TIMESTAMP}


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.kafka
def test_what_the_example_publishes_is_read_as_declared(
    kafka_bootstrap: str,
    new_topic: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = new_topic()

    def here(text: str) -> str:
        assert text.count("localhost:9092") == 1
        return text.replace("localhost:9092", kafka_bootstrap)

    monkeypatch.chdir(tmp_path)
    for folder in ("schemas", "config/sources"):
        Path(folder).mkdir(parents=True)
    Path("schemas/shop.desc").write_bytes(descriptor_set(protobuf_fields(COLUMNS), name="Click"))
    declared = here(block("yaml")).replace("topic: clicks", f"topic: {topic}")
    Path("config/sources/clicks.yaml").write_text(declared)
    names: dict[str, Any] = {}
    example = here(block("python")).replace('"clicks"', f'"{topic}"')
    exec(compile(example, "docs/kafka.md", "exec"), names)
    assert cli.run(["preview", "clicks", "--output", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert {name: row[name] for name in ("user", "price")} == {"user": "u1", "price": 2.5}


@pytest.mark.kafka
def test_a_topic_is_created_once_and_shown(
    kafka_bootstrap: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = f"topic-{tmp_path.name}"
    monkeypatch.setenv("KAFKA_BOOTSTRAP", kafka_bootstrap)
    assert cli.run(["kafka", "topic", name, "--partitions", "2"]) == 0
    place = f"at {kafka_bootstrap}: 2 partitions"
    assert capsys.readouterr().out == f"topic {name} created {place}\n"
    assert cli.run(["kafka", "topic", name]) == 0
    assert capsys.readouterr().out == f"topic {name} exists {place}\n"
    found, calls = Cluster.topic, []

    def created_in_between(cluster: Cluster, topic: str) -> Any:
        calls.append(topic)
        return None if len(calls) == 1 else found(cluster, topic)

    monkeypatch.setattr(Cluster, "topic", created_in_between)
    assert cli.run(["kafka", "topic", name, "--partitions", "5"]) == 0
    assert capsys.readouterr().out == f"topic {name} exists {place}\n"


def test_a_topic_without_a_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path))
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)
    assert cli.run(["kafka", "topic", "clicks"]) == 4
    assert "`forebay kafka start` starts one" in capsys.readouterr().err
