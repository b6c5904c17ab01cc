"""The order of the chain and what becomes part of it: lines, rows that agree, silence."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from support import independent
from support.declarations import COLUMNS
from support.parquet_files import null_labels
from support.projects import (
    DAY,
    FIRST_DAY,
    Project,
    ads_pipeline,
    ads_project,
    clicks_source,
    declared_project,
    history_source,
    hourly_batches,
    write_history,
)
from support.truth_rows import served_of

from forebay.datatasks.sources.log.writer import LogWriter

pytestmark = pytest.mark.usefixtures("jobs_here")

ROWS = 500
FIRST, SECOND, THIRD = "2026-03-01", "2026-03-02", "2026-03-03"


def models(project: Project, line: str = "main") -> dict[tuple[str, int], str]:
    done = project.forebay("models", "ls", "ads", "--line", line, "--output", "json")
    return {(row["window"], row["generation"]): row["state"] for row in json.loads(done.stdout)}


def why(project: Project, window: str, line: str = "main") -> dict[str, Any]:
    done = project.forebay("why", "ads", window, "--line", line, "--output", "json")
    return dict(json.loads(done.stdout))


def refused(project: Project, first: str, last: str, *more: str) -> tuple[int, str]:
    done = project.forebay("run", "ads", "--from", first, "--to", last, *more, check=False)
    return done.returncode, " ".join(done.stderr.split())


# Lines are independent ------------------------------------------------------------------------


@pytest.mark.guarantee(
    "another line reprocesses a window",
    "nothing: models, staleness and what serves stay as they are",
)
def test_a_reprocess_of_one_line_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    project = ads_project(tmp_path, days=2, rows=ROWS)
    first = project.run(FIRST, SECOND)
    project.run(FIRST, SECOND, "--line", "b")
    before, served = models(project), served_of(project.home, "ads")
    again = project.run(FIRST, FIRST, "--reprocess", "--line", "b")
    assert again["windows"][0]["generation"] == 2
    found = project.run(FIRST, SECOND)
    assert found["trained_windows"] == []
    assert found["stale_windows"] == []
    assert found["seen"] == first["seen"]
    assert [each["data_changed"] for each in found["windows"]] == [None, None]
    assert (models(project), served_of(project.home, "ads")) == (before, served)
    assert why(project, FIRST)["state"] == "trained"
    stale = f"stale (built on generation 1 of {FIRST}), serves"
    assert models(project, "b")[SECOND, 1] == stale


@pytest.mark.guarantee(
    "another line forgets a window", "nothing: models, staleness and what serves stay as they are"
)
@pytest.mark.chaos
def test_a_forget_of_one_line_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    project = ads_project(tmp_path, days=1, rows=ROWS)
    project.run(FIRST, FIRST)
    project.run(FIRST, FIRST, "--line", "b")
    before = models(project, "b")
    project.forebay("forget", "ads", FIRST)
    assert models(project, "b") == before == {(FIRST, 1): "current, serves"}
    assert models(project) == {(FIRST, 1): "forgotten (the next run trains it again), serves"}
    report = ("report", "ads", "--from", FIRST, "--to", FIRST)
    assert f"forgotten windows: {FIRST}" in project.forebay(*report).stdout
    assert "forgotten" not in project.forebay(*report, "--line", "b").stdout
    assert project.run(FIRST, FIRST)["trained_windows"] == [FIRST]
    assert models(project) == {(FIRST, 1): "replaced", (FIRST, 2): "current, serves"}
    found = project.run(FIRST, FIRST, "--line", "b")
    assert (found["trained_windows"], found["windows"][0]["generation"]) == ([], 1)
    assert models(project, "b") == before


@pytest.mark.guarantee(
    "another line finds that a window's data changed",
    "nothing; the others say `data changed` until they reprocess themselves",
)
@pytest.mark.chaos
def test_changed_data_of_one_line_marks_the_others(tmp_path: Path) -> None:
    project = ads_project(tmp_path, days=1, rows=ROWS)
    first = project.run(FIRST, FIRST)
    write_history(project.files, FIRST_DAY - DAY, 2 * ROWS)
    other = project.run(FIRST, FIRST, "--line", "b")  # its own first look at the data
    assert other["seen"]["history"]["rows"] == 2 * ROWS
    found = project.run(FIRST, FIRST)
    assert found["trained_windows"] == []
    assert found["seen"] == first["seen"]
    changed = (
        "data changed (generation 2 was planned from the new data, and this model was trained from "
        "generation 1)"
    )
    assert found["windows"][0]["data_changed"] == changed
    asked = why(project, FIRST)
    assert asked["state"] == "data changed"
    assert asked["command"] == f"forebay run ads --from {FIRST} --to {FIRST} --reprocess"
    report = project.forebay("report", "ads", "--from", FIRST, "--to", FIRST).stdout
    assert f"note  window {FIRST}: {changed}" in report
    explained = project.forebay("explain", "ads", "--from", FIRST, "--to", FIRST).stdout
    assert f"changed  {FIRST}" in explained
    assert models(project) == {(FIRST, 1): f"{changed}, serves"}
    anew = project.run(FIRST, FIRST, "--reprocess")
    assert anew["seen"]["history"]["rows"] == 2 * ROWS
    assert anew["windows"][0]["data_changed"] is None
    assert why(project, FIRST, "b")["state"] == "trained"


@pytest.mark.chaos
def test_a_dead_letter_says_its_line(tmp_path: Path) -> None:
    project = ads_project(tmp_path, days=1, rows=ROWS)
    project.write_source("history", history_source(label_null="dead_letter"))
    null_labels(next(project.files.rglob("*.parquet")), ROWS)
    project.run(FIRST, FIRST, "--line", "b")
    done = project.forebay("dead", "ls", "ads", "--output", "json")
    found = [(row["model_line"], row["rows"]) for row in json.loads(done.stdout)]
    assert found == [("b", 1)]


# Judged before it is linked ---------------------------------------------------------------------


@pytest.mark.guarantee(
    "rows of a window are lost after planning or reading, whoever lost them",
    "red with source and counts; the window is not linked, nothing is published, and the next "
    "window waits; read again: the whole window, when it runs again",
)
def test_a_window_whose_rows_disagree_is_no_link(tmp_path: Path) -> None:
    project = ads_project(tmp_path, days=3, rows=ROWS)
    project.run(FIRST, FIRST)
    served = served_of(project.home, "ads")
    project.forebay("plan", "ads", "--from", SECOND, "--to", THIRD)
    # Let the recorded plan of a window promise other rows than its data has.
    newest = "window_id = (SELECT id FROM windows WHERE key = ?) ORDER BY generation DESC"
    with closing(sqlite3.connect(project.home / "forebay.db")) as database, database:
        (row,) = database.execute(f"SELECT id, document FROM plans WHERE {newest}", (SECOND,))
        plan = json.loads(row[1])
        plan["sources"]["history"]["rows"] += 7
        database.execute("UPDATE plans SET document = ? WHERE id = ?", (json.dumps(plan), row[0]))
    for _ in range(2):  # it is as red when it is called again
        code, text = refused(project, SECOND, THIRD)
        assert code == 3, text
        counts = f"planned {ROWS + 7}, served {ROWS}, trained {ROWS}, dead 0"
        assert f"window {SECOND}, source history: {counts}" in text
        assert f"--from {SECOND} --to {SECOND} --reprocess" in text
        assert list(models(project)) == [(FIRST, 1)]
        assert served_of(project.home, "ads") == served
    project.run(SECOND, SECOND, "--reprocess")  # the way out
    assert project.run(FIRST, THIRD)["seen"]["history"]["rows"] == 3 * ROWS


@pytest.mark.guarantee(
    "a pipeline is started on windows that have no rows",
    "red, and no untrained model is published; earlier windows can be trained as if nothing had"
    " happened",
)
def test_a_model_that_learnt_nothing_is_no_beginning(tmp_path: Path) -> None:
    """What `forebay up` did over old data: yesterday is empty, and the past is trained later."""
    project = ads_project(tmp_path, days=2, rows=ROWS)
    empty = "2026-03-20"
    code, text = refused(project, empty, empty)
    assert code == 2, text
    assert f"window {empty} cannot begin line 'main'" in text
    assert models(project) == {}
    found = project.run(FIRST, SECOND)
    assert found["published"]["window"] == SECOND
    assert found["seen"]["clicks"]["rows"] == 2 * ROWS


def test_a_range_that_begins_without_rows_names_where_to_begin(tmp_path: Path) -> None:
    project = hourly_project(tmp_path, [3, 4])
    code, text = refused(project, key_of(0), key_of(4))
    assert code == 2, text
    way_out = f"begin with the first window that has rows, --from {key_of(3)}"
    assert f"it has no rows. What to do: {way_out}" in text
    assert not (project.home / "jobs").exists(), "nothing was started for it"
    found = project.run(key_of(3), key_of(4))
    assert len(found["trained_windows"]) == 2


def hourly_project(root: Path, hours: list[int], **ready: Any) -> Project:
    """Hourly windows of a log alone, with rows in these hours of the first two days."""
    project = declared_project(root)
    dataset = project.pipeline["dataset"]
    dataset["window"] = "1h"
    dataset["streams"] = {"clicks": {"sources": ["clicks"]}}
    project.write_pipeline()
    project.write_source("clicks", clicks_source(ready=ready) if ready else clicks_source())
    writer = LogWriter(project.log, 0)
    days = [FIRST_DAY + number * DAY for number in range(3)]
    batches = [each for day, at in enumerate(days) for each in hourly_batches(at, ROWS, 1, day)]
    for hour in hours:
        rows, commit, _ = batches[hour]
        writer.append(rows, commit)
    return project


def key_of(hour: int) -> str:
    return (FIRST_DAY + timedelta(hours=hour)).strftime("%Y-%m-%dT%H")


@pytest.mark.guarantee(
    "a source falls silent",
    "0 rows, with a note, for up to `ready.silent_max`; then red, or 0 rows by `ready.late`",
)
def test_a_silent_night_is_trained_and_a_longer_silence_is_late(tmp_path: Path) -> None:
    project = hourly_project(tmp_path, [0, 1, 8, 40], silent_max="6h")
    night = project.run(key_of(0), key_of(8))
    assert len(night["trained_windows"]) == 9
    rows = [each["sources"]["clicks"]["trained_rows"] for each in night["windows"]]
    assert [number for number, count in enumerate(rows) if count] == [0, 1, 8]
    assert f"source clicks: no rows in 6 windows, the first is {key_of(2)}" in night["notes"]
    code, text = refused(project, key_of(9), key_of(17))
    assert code == 2, text
    assert "source 'clicks' is silent: no rows for longer than ready.silent_max (6h)" in text
    assert "up to 2026-03-01T16:00Z" in text
    assert list(models(project))[-1] == (key_of(14), 1)
    project.write_source("clicks", clicks_source(ready={"silent_max": "6h", "late": "skip"}))
    found = project.run(key_of(9), key_of(17))
    assert found["trained_windows"] == [key_of(15), key_of(16), key_of(17)]


# Learnt rows ----------------------------------------------------------------------------------


@pytest.mark.guarantee(
    "no paradigm learns from a source's rows",
    "they are seen and counted, but not learnt: `learnt_rows`, and a note",
)
def test_rows_that_no_paradigm_takes_are_seen_and_not_learnt(tmp_path: Path) -> None:
    pipeline = ads_pipeline("towers")
    pipeline["train"] |= {"paradigm": "stream", "compare": ["mixture"]}
    project = ads_project(tmp_path, days=2, rows=ROWS, pipeline=pipeline)
    both = project.run(FIRST, FIRST)["windows"][0]["sources"]
    assert both["history"]["learnt_rows"] == {"stream": 0, "mixture": ROWS}
    assert both["clicks"]["learnt_rows"] == {"stream": ROWS, "mixture": ROWS}
    pipeline["train"].pop("compare")
    project.write_pipeline()
    alone = project.run(FIRST, SECOND, "--line", "alone")
    for window in alone["windows"]:
        assert window["sources"]["history"]["trained_rows"] == ROWS
        assert window["sources"]["history"]["learnt_rows"] == {"stream": 0}
        assert window["sources"]["clicks"]["learnt_rows"] == {"stream": ROWS}
    assert alone["seen"]["history"]["rows"] == 2 * ROWS
    assert f"source history: {2 * ROWS:,} rows that no paradigm trains on" in alone["notes"]


# The order of the chain -------------------------------------------------------------------------


@pytest.mark.chaos
def test_a_warm_start_on_the_day_of_the_first_hourly_window(tmp_path: Path) -> None:
    """Its key sorts after those of the windows that come after it."""
    project = hourly_project(tmp_path, list(range(10)))
    dataset = project.pipeline["dataset"]
    dataset["start"] = "2026-03-01T05:00:00Z"
    project.pipeline["train"]["warm_start"] = "2026-03-01T00:00:00Z"
    project.write_pipeline()
    first = project.run(key_of(5), key_of(6))
    assert first["warm_start"]["window"] == f"2026-03-01_{key_of(5)}"
    parents = [each["parent"]["window"] for each in first["windows"]]
    assert parents == [first["warm_start"]["window"], key_of(5)]
    found = project.run(key_of(5), key_of(9))
    assert found["trained_windows"] == [key_of(7), key_of(8), key_of(9)]
    assert found["stale_windows"] == []
    begin = int(FIRST_DAY.timestamp() * 1000)
    rows = independent.log_sums(project.log, begin, begin + 10 * 3_600_000)
    assert found["seen"]["clicks"] == rows
    assert found["published"]["window"] == key_of(9)


@pytest.mark.guarantee(
    "a reprocess fails because its data is bad",
    "red; `--reprocess` reads again once the cause is fixed; read again: what it had trained",
)
def test_a_reprocess_after_one_that_failed_reads_again(tmp_path: Path) -> None:
    project = ads_project(tmp_path, days=1, rows=ROWS)
    project.run(FIRST, FIRST)
    path = next(project.files.rglob("*.parquet"))
    sound = path.read_bytes()
    null_labels(path, 1)
    code, text = refused(project, FIRST, FIRST, "--reprocess")
    assert code == 3, text
    path.write_bytes(sound)
    again = project.run(FIRST, FIRST, "--reprocess")
    assert again["trained_windows"] == [FIRST]
    assert again["seen"]["history"]["rows"] == ROWS
    generation = again["windows"][0]["generation"]
    write_history(project.files, FIRST_DAY - DAY, 2 * ROWS)
    third = project.run(FIRST, FIRST, "--reprocess")
    assert third["windows"][0]["generation"] > generation
    assert third["seen"]["history"]["rows"] == 2 * ROWS


# Declarations that change between windows -------------------------------------------------------


@pytest.mark.guarantee(
    "the size or time zone of windows is changed",
    "red if a window would share rows with one that its line has trained",
)
@pytest.mark.chaos
def test_windows_of_another_size_or_zone_train_no_row_twice(tmp_path: Path) -> None:
    project = hourly_project(tmp_path, list(range(48)))
    dataset = project.pipeline["dataset"]
    project.run(key_of(0), key_of(2))
    dataset["window"] = "1d"
    project.write_pipeline()
    code, text = refused(project, FIRST, FIRST)
    assert code == 1, text
    assert f"window {FIRST} (2026-03-01T00:00Z to 2026-03-02T00:00Z) shares rows with" in text
    days = project.run(FIRST, FIRST, "--line", "days")
    dataset["timezone"] = "Europe/Berlin"
    project.write_pipeline()
    for day in (FIRST, SECOND):
        code, text = refused(project, day, day, "--line", "days")
        assert (code, f"shares rows with window {FIRST}" in text) == (1, True), text
    dataset |= {"window": "1h", "timezone": "UTC"}
    project.write_pipeline()
    assert project.run(key_of(3), key_of(23))["seen"] == days["seen"]
    assert len(project.run(key_of(24), key_of(25), "--line", "days")["trained_windows"]) == 2


@pytest.mark.guarantee(
    "the `offset`, `starts` or `ends` of rows is changed, or changed and taken back",
    "red if rows would be trained on twice or left out; a later `starts` leaves a gap, which "
    "notes and `why` name",
)
@pytest.mark.chaos
@pytest.mark.parametrize(("offset", "what"), [("0h", "never be trained"), ("48h", "trained twice")])
def test_an_offset_that_is_changed_repeats_and_leaves_out_no_rows(
    tmp_path: Path, offset: str, what: str
) -> None:
    project = ads_project(tmp_path, days=2, rows=ROWS)
    project.run(FIRST, FIRST)
    history = project.pipeline["dataset"]["streams"]["history"]
    history["offset"] = offset
    project.write_pipeline()
    code, text = refused(project, SECOND, SECOND)
    assert code == 1, text
    assert f"window {SECOND}: rows of source 'history'" in text
    assert what in text
    assert list(models(project)) == [(FIRST, 1)]
    history["offset"] = "24h"
    project.write_pipeline()
    assert project.run(SECOND, SECOND)["seen"]["history"]["rows"] == 2 * ROWS


@pytest.mark.guarantee(
    "`event_time` of a source is changed, or whether `window_path` says the time of its rows",
    "red: rows would be trained on twice, or left out",
)
@pytest.mark.chaos
def test_rows_that_belong_to_windows_by_another_column_come_neither_twice_nor_never(
    tmp_path: Path,
) -> None:
    project = ads_project(tmp_path, days=2, rows=ROWS)
    project.run(FIRST, FIRST)
    for path in project.files.rglob("*.parquet"):
        rows = pq.read_table(path)
        later = pc.add(rows["at"], pa.scalar(timedelta(hours=12)))
        pq.write_table(rows.append_column("sent", later), path)
    columns = COLUMNS | {"sent": "timestamp"}
    project.write_source("history", history_source(columns=columns, event_time="sent"))
    code, text = refused(project, SECOND, SECOND)
    assert code == 1, text
    assert "by column 'sent' now, and by column 'at' in the windows before it" in text
    assert list(models(project)) == [(FIRST, 1)]
    project.write_source("history", history_source())
    assert project.run(SECOND, SECOND)["seen"]["history"]["rows"] == 2 * ROWS


@pytest.mark.guarantee(
    "`train.warm_start` is changed",
    "nothing; a line keeps the warm start that it began with, and a note says so",
)
@pytest.mark.chaos
def test_a_warm_start_that_is_changed_is_for_other_lines(tmp_path: Path) -> None:
    project = ads_project(tmp_path, days=4, rows=ROWS)
    project.pipeline["dataset"]["start"] = THIRD
    train = project.pipeline["train"]
    train["warm_start"] = FIRST
    project.write_pipeline()
    project.run(THIRD, THIRD)
    train["warm_start"] = SECOND
    project.write_pipeline()
    found = project.run(THIRD, "2026-03-04")
    assert (found["trained_windows"], found["stale_windows"]) == (["2026-03-04"], [])
    assert {rows["rows"] for rows in found["seen"].values()} == {4 * ROWS}
    other = project.run(THIRD, "2026-03-04", "--line", "b")
    assert {rows["rows"] for rows in other["seen"].values()} == {3 * ROWS}
