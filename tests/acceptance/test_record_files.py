"""From an empty directory, and files or a topic as people have them, to a model.

Of files with two commands and one YAML; of a topic with one command and the YAML of its source too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.projects import DAY, FIRST_DAY, Project, Topic, rows_of_day, topic_source
from support.record_files import WRITERS, compressed

from forebay.cli import run
from forebay.datatasks.sources.kafka.producer import publish_rows_json

PIPELINE = """\
dataset:
  window: 1d
  start: 2026-03-01
  end: 2026-03-03
  event_id: event
  label: {column: clicked}
  streams: {all: {sources: [views]}}
  features:
    user: {encode: hash, buckets: 100}
    price: {encode: numeric}
train: {paradigm: PARADIGM, minibatch_rows: 64}
"""
PLACES = {
    "json": "logs/date={day:%Y-%m-%d}/part-0.json.gz",
    "csv": "logs/{day:%Y%m%d}.csv",
    "tfrecord": "logs/all.tfrecord",
}
DAYS = (FIRST_DAY, FIRST_DAY + DAY)
Trained = Callable[[str], None]


@pytest.fixture
def trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Trained:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path / ".forebay"))

    def run_all(paradigm: str) -> None:
        Path("config/pipelines").mkdir(exist_ok=True)
        Path("config/pipelines/clicks.yaml").write_text(PIPELINE.replace("PARADIGM", paradigm))
        ended = run(["run", "clicks", "--from", "2026-03-01", "--to", "2026-03-02"])
        printed = capsys.readouterr()
        assert ended == 0, printed.out + printed.err
        assert run(["models", "ls", "clicks"]) == 0
        assert "2026-03-02" in capsys.readouterr().out

    return run_all


@pytest.mark.parametrize("kind", PLACES)
def test_files_become_a_model(kind: str, trained: Trained) -> None:
    for day in DAYS:
        path = Path(PLACES[kind].format(day=day))
        path.parent.mkdir(parents=True, exist_ok=True)
        content = compressed(WRITERS[kind](rows_of_day(day, 200, 3)), path.suffix)
        with path.open("ab") as file:
            file.write(content)
    assert run(["init", ".", "--from", f"{kind}://logs", "--name", "views"]) == 0
    trained("batch")


@pytest.mark.kafka
def test_a_topic_becomes_a_model(
    kafka_bootstrap: str, new_topic: Callable[..., str], tmp_path: Path, trained: Trained
) -> None:
    topic = Topic(kafka_bootstrap, new_topic())
    rows = [row for day in DAYS for row in rows_of_day(day, 200, 3).to_pylist()]
    publish_rows_json(topic.bootstrap, topic.name, [(row, row["at"], 0) for row in rows])
    Project(tmp_path).write_source("views", topic_source(topic, options={"format": "json"}))
    trained("stream")
