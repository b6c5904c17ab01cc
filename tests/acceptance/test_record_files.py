"""From an empty directory, and files or a topic as people have them, to a model.

With two commands and one YAML.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
import yaml
from support.projects import DAY, FIRST_DAY, Topic, rows_of_day
from support.record_files import WRITERS, compressed
from support.topic_changes import delete_before

from forebay.cli import run
from forebay.datatasks.sources.kafka.producer import publish_rows_json

pytestmark = pytest.mark.usefixtures("jobs_here")

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
    place = f"kafka://{topic.bootstrap}/{topic.name}"
    assert run(["init", ".", "--from", place, "--name", "views"]) == 0
    guessed = yaml.safe_load(Path("config/pipelines/views.yaml").read_text())["dataset"]
    assert (guessed["start"], guessed["label"]) == (date(2026, 3, 1), {"column": "clicked"})
    trained("stream")
    delete_before(topic, 1)
    assert run(["init", ".", "--from", place, "--name", "later"]) == 0
    later = yaml.safe_load(Path("config/pipelines/later.yaml").read_text())["dataset"]
    assert later["start"] == date(2026, 3, 2), "retention has taken some of the first day"


@pytest.mark.kafka
def test_a_topic_that_no_source_can_come_from(
    kafka_bootstrap: str, new_topic: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    empty = new_topic()
    for place, message in [
        (f"{kafka_bootstrap}/{empty}", f"topic {empty}: no json messages: it has no records"),
        (f"{kafka_bootstrap}/{empty}s", f"did you mean '{empty}'?"),
        (kafka_bootstrap, "write kafka://HOST:PORT/TOPIC"),
        ("127.0.0.1:1/views", "127.0.0.1:1"),
        ("nowhere/views", "nowhere"),
    ]:
        assert run(["init", "shop", "--from", f"kafka://{place}"]) > 0
        said = capsys.readouterr().err
        assert message in said
        assert not Path("shop/config").exists()
