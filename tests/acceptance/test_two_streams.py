"""One source in two streams of a dataset, from its YAML to the model's own row sums."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import independent
from support.projects import (
    DAY,
    FIRST_DAY,
    Project,
    Topic,
    ads_pipeline,
    clicks_source,
    history_source,
    publish_day,
    rows_of_day,
    topic_source,
    write_history,
    write_log,
)

ROWS = 600
FIRST, LAST = "2026-03-01", "2026-03-02"
# The day before the first window, and those of both windows.
DAYS = [FIRST_DAY + number * DAY for number in (-1, 0, 1)]
LIVE, YESTERDAY = "rows@live", "rows@yesterday"
STREAMS = {
    "live": {"sources": ["rows"], "feed": "stream"},
    "yesterday": {"sources": ["rows"], "offset": "24h", "feed": "batch"},
}


def ms(day: int) -> int:
    """The start of DAYS[day]; that of the next day after the last one."""
    return int((DAYS[0] + day * DAY).timestamp() * 1000)


def declared(root: Path, source: dict[str, Any], **model: Any) -> Project:
    pipeline = ads_pipeline(**model)
    pipeline["dataset"]["streams"] = STREAMS
    project = Project(root, pipeline)
    project.write_source("rows", source | {"starts": "2026-02-28"})
    project.write_pipeline()
    return project


def trained(summary: dict[str, Any]) -> list[dict[str, int]]:
    return [
        {name: source["trained_rows"] for name, source in window["sources"].items()}
        for window in summary["windows"]
    ]


@pytest.mark.guarantee(
    "a dataset reads one source in several streams, each with its own offset",
    "nothing; each row is trained on once for each stream",
)
@pytest.mark.usefixtures("jobs_here")
def test_a_log_is_trained_once_for_each_stream(tmp_path: Path) -> None:
    project = declared(tmp_path, clicks_source(), model="towers")
    for number, day in enumerate(DAYS):
        write_log(project.log, day, ROWS + number, seed=100 + number)
    summary = project.run(FIRST, LAST)
    assert trained(summary) == [
        {LIVE: ROWS + 1, YESTERDAY: ROWS},
        {LIVE: ROWS + 2, YESTERDAY: ROWS + 1},
    ]
    assert summary["seen"] == {
        LIVE: independent.log_sums(project.log, ms(1), ms(3)),
        YESTERDAY: independent.log_sums(project.log, ms(0), ms(2)),
    }
    # What the stream had in the first window is what history has in the second one.
    live, yesterday = (
        summary["windows"][number]["sources"][name] for number, name in enumerate((LIVE, YESTERDAY))
    )
    assert live["offsets"] == yesterday["offsets"]
    # A row's label is the same both times.
    assert summary["pooled"]["label_completeness"]["share"] == 1
    assert summary["windows"][0]["metrics"]["mixture"]["joined_rows"] == ROWS + 1
    # Segments are committed a minute before the end of each hour: the first 59 minutes after the
    # start of its day, the last one minute before the end.
    words = ["live 0h (measured -1h to 0h)", "yesterday 24h (measured 23h to 24h)"]
    assert summary["offset_words"] == words
    first = summary["windows"][0]["stream_offsets"]["yesterday"]
    assert first["measured_seconds"] == [24 * 3600.0 - 59 * 60, 24 * 3600.0 + 60]
    why = project.forebay("why", "ads", FIRST).stdout
    assert f"offsets: {', '.join(words)}" in why
    report = project.forebay("report", "ads", "--from", FIRST, "--to", LAST).stdout
    assert f"offset  {words[1]}" in report
    again = project.run(LAST, LAST, "--reprocess")
    assert (trained(again), again["seen"]) == (trained(summary)[1:], summary["seen"])


@pytest.mark.usefixtures("jobs_here")
def test_files_are_trained_once_for_each_stream_and_compared_in_both(tmp_path: Path) -> None:
    project = declared(tmp_path, history_source())
    for number, day in enumerate(DAYS):
        write_history(project.files, day, ROWS + number, seed=100 + number)
    explained = json.loads(project.forebay("explain", "ads", "--output", "json").stdout)
    assert [each["source"] for each in explained["windows"]][:2] == [LIVE, YESTERDAY]
    summary = project.run(FIRST, LAST)
    for name, days in ((LIVE, DAYS[1:]), (YESTERDAY, DAYS[:2])):
        dates = ", ".join(f"date '{day:%Y-%m-%d}'" for day in days)
        where = f"(\"at\" at time zone 'UTC')::date in ({dates})"
        assert summary["seen"][name] == independent.parquet_sums(project.files, where), name
    at = rows_of_day(DAYS[0], ROWS, seed=100)["at"].to_pylist()
    ends = [(DAYS[1] - at[0]).total_seconds(), (DAYS[2] - at[-1]).total_seconds()]
    measured = summary["windows"][0]["stream_offsets"]["yesterday"]["measured_seconds"]
    assert measured == pytest.approx(sorted(ends), abs=1e-6)
    assert summary["offset_words"][1] == "yesterday 24h (measured 23.9h to 24.1h)"
    write_history(project.files / "late", DAYS[1], 5, seed=900)
    for window, name in ((FIRST, LIVE), (LAST, YESTERDAY)):
        why = project.forebay("why", "ads", window).stdout
        assert f"{name}: its files have changed since it was planned: 2 new" in why
    project.forebay("forget", "ads", LAST)
    summary = project.run(LAST, LAST)
    assert trained(summary) == [{LIVE: ROWS + 2, YESTERDAY: ROWS + 1 + 5}]


@pytest.mark.usefixtures("jobs_here")
def test_dead_letters_say_which_stream_read_the_row(tmp_path: Path) -> None:
    project = declared(tmp_path, clicks_source(bad_rows="dead_letter", label_null="dead_letter"))
    project.pipeline["dataset"]["label"] |= {"positive": 1, "negative": 7}
    project.write_pipeline()
    for number, day in enumerate(DAYS):
        write_log(project.log, day, ROWS, seed=100 + number)
    summary = project.run(FIRST, LAST)
    assert summary["rows_agree"]
    dead = {
        (window["window"], name): source["dead_letter_rows"]
        for window in summary["windows"]
        for name, source in window["sources"].items()
    }
    assert dead[FIRST, LIVE] == dead[LAST, YESTERDAY] > 0
    for asked, shown in (("rows", {LIVE, YESTERDAY}), (LIVE, {LIVE}), (YESTERDAY, {YESTERDAY})):
        command = ("dead", "ls", "ads", "--source", asked, "--output", "json")
        found = json.loads(project.forebay(*command).stdout)
        assert {each["source"] for each in found} == shown


@pytest.mark.kafka
def test_a_topic_is_trained_once_for_each_stream(
    tmp_path: Path, kafka_bootstrap: str, new_topic: Callable[..., str]
) -> None:
    topic = Topic(kafka_bootstrap, new_topic(2))
    project = declared(tmp_path, topic_source(topic))
    for number, day in enumerate(DAYS):
        publish_day(topic, day, ROWS + number, seed=100 + number)
    summary = project.run(FIRST, LAST)
    assert summary["seen"] == {
        LIVE: independent.kafka_sums(topic.bootstrap, topic.name, ms(1), ms(3)),
        YESTERDAY: independent.kafka_sums(topic.bootstrap, topic.name, ms(0), ms(2)),
    }
    # Each stream has committed its own position: that of its last window's end.
    for stream, day in (("live", 3), ("yesterday", 2)):
        group = f"forebay.ads.{stream}"
        committed = independent.kafka_committed(topic.bootstrap, topic.name, group)
        assert committed == independent.kafka_ends(topic.bootstrap, topic.name, ms(day))
