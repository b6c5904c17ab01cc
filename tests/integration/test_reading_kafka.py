"""Readings of a real topic: the rows of its windows, bad ones counted, no offset committed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support import independent
from support.projects import Project, Topic

from forebay.datatasks.sources.kafka.producer import publish
from forebay.reading import read_windows

pytestmark = pytest.mark.kafka
START = datetime(2026, 3, 1, tzinfo=UTC)
ROWS = 700
BAD = (3, 404)
NewTopic = Callable[..., str]


def message(number: int) -> bytes:
    return b'{"id": ' + (b'"bad"' if number % 1000 in BAD else b"%d" % number) + b', "kept": 1}'


@pytest.fixture
def project(kafka_bootstrap: str, new_topic: NewTopic, tmp_path: Path) -> Project:
    """Two days in a topic of two partitions: ids 0 to 699, 1000 to 1699; some are no number."""
    topic = Topic(kafka_bootstrap, new_topic(2))
    made = Project(tmp_path, topic=topic)
    options = {"bootstrap": topic.bootstrap, "topic": topic.name, "format": "json"}
    columns = {"id": "int", "kept": "int"}
    source = {"kind": "kafka", "options": options, "columns": columns, "bad_rows": "dead_letter"}
    made.write_source("clicks", source)
    made.pipeline = {
        "dataset": {
            "window": "1d",
            "start": "2026-03-01",
            "event_id": ["id"],
            "label": {"column": "kept"},
            "streams": {"clicks": {"sources": ["clicks"]}},
            "features": {"id": {"encode": "numeric"}},
        },
        "model": {"kind": "towers"},
        "train": {"paradigm": "stream", "minibatch_rows": 64},
    }
    made.write_pipeline()
    sent = (
        (message(1000 * day + n), START + timedelta(days=day, minutes=n), n % 2)
        for day in range(2)
        for n in range(ROWS)
    )
    publish(topic.bootstrap, topic.name, sent)
    return made


def read(
    project: Project, position: str | None = None, most: int = 1 << 30
) -> tuple[Counter[int], dict[str, int], str]:
    """How often each id came, dead rows by source, and the position after it."""
    found: Counter[int] = Counter()
    days = {"first": "2026-03-01", "last": "2026-03-02"}
    with read_windows(project.root / "config", "ads", **days, position=position) as rows:
        for number, arrays in enumerate(rows.numpy(), 1):
            dense = arrays["dense"]
            assert not isinstance(dense, str | tuple)
            found.update(dense[:, 0].astype(int).tolist())
            if number == most:
                break
        return found, dict(rows.dead_rows), rows.position()


def stored_ids() -> Counter[int]:
    return Counter(1000 * day + n for day in range(2) for n in range(ROWS) if n not in BAD)


def offsets(project: Project) -> dict[int, int]:
    assert project.topic is not None
    return independent.kafka_committed(project.topic.bootstrap, project.topic.name, "forebay.ads")


def test_a_topic_is_read_once_and_its_bad_rows_are_counted(project: Project) -> None:
    found, dead, _ = read(project)
    assert found == stored_ids()
    assert dead == {"clicks": 2 * len(BAD)}
    assert offsets(project) == {}
    begun, _, position = read(project, most=3)
    rest, _, _ = read(project, position)
    assert begun + rest == stored_ids()


def test_a_run_beside_it_trains_all_rows_and_commits_alone(project: Project) -> None:
    done = project.start("run", "ads", "--from", "2026-03-01", "--to", "2026-03-01")
    with done:
        assert read(project)[0] == stored_ids()
        said = done.communicate(timeout=120)[0]
    assert done.returncode == 0, said
    trained = offsets(project)
    assert trained == {0: ROWS // 2, 1: ROWS // 2}
    assert read(project)[0] == stored_ids()
    assert offsets(project) == trained
