"""Two labels of one dataset, each with its own delay, from YAML to the model that serves both."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.declarations import COLUMNS
from support.jobs_here import jobs_in_this_process
from support.parquet_files import null_labels, write_table
from support.projects import (
    DAY,
    FIRST_DAY,
    Project,
    ads_pipeline,
    declared_project,
    parts_of,
    rows_of_day,
    with_column,
)

from forebay.datatasks.sources.log.writer import LogWriter

RANGE = ("--from", "2026-03-01", "--to", "2026-03-03")
ROW = {"user": "u1", "price": 3.0, "mobile": True, "tags": ["t1"]}
DAYS = 3
ROWS = 3_000
WAIT = timedelta(hours=2)
DELAY_HOURS = 12.0  # of a sale, on the mean
NULL_EVERY = 50
TWO_COLUMNS = {**COLUMNS, "sold": "int"}
LABELS: dict[str, Any] = {
    "click": {"column": "clicked", "delay": "none"},
    "sale": {"column": "sold", "known_at": "known", "weight": 2.0},
}
Trained = tuple[Project, dict[str, Any]]


def events(day: datetime) -> pa.Table:
    """Rows of a day: two of three clicks of some users are sales, known hours after the event."""
    seed = (day - FIRST_DAY) // DAY + 100
    table = rows_of_day(day, ROWS, seed)
    rng = np.random.default_rng(seed)
    clicked = table.column("clicked").to_numpy()
    likes = np.array([int(user[1:]) % 3 != 0 for user in table.column("user").to_pylist()])
    sold = clicked * (rng.random(ROWS) < np.where(likes, 0.7, 0.1))
    delays = (rng.exponential(DELAY_HOURS, ROWS) * 3600e6).astype("timedelta64[us]")
    known = table.column("at").to_numpy() + delays
    return table.append_column("sold", pa.array(sold.astype(np.int64))).append_column(
        "known", pa.array(known, pa.timestamp("us", tz="UTC"))
    )


def two_labels(root: Path) -> Project:
    """Of some rows of history nobody knows whether they were sold; an hour of the stream comes
    `WAIT` after its end, with its clicks and the sales known by then."""
    pipeline = ads_pipeline("towers")
    del pipeline["dataset"]["label"]
    pipeline["dataset"]["named_labels"] = {name: dict(label) for name, label in LABELS.items()}
    pipeline["train"] |= {"delay": "head", "compare": ["stream"], "minibatch_rows": 256}
    history = {"columns": {**TWO_COLUMNS, "known": "timestamp"}}
    project = declared_project(root, pipeline, history=history, clicks={"columns": TWO_COLUMNS})
    writer = LogWriter(project.log, 0)
    for day in (FIRST_DAY + number * DAY for number in range(DAYS)):
        path = project.files / f"date={day - DAY:%Y-%m-%d}" / "part-0.parquet"
        write_table(path, events(day - DAY), ROWS)
        null_labels(path, NULL_EVERY, "sold")
        for piece, end in parts_of(events(day), day, timedelta(hours=1)):
            published = end + WAIT
            here = piece.column("known").to_numpy() <= np.datetime64(published.replace(tzinfo=None))
            fresh = np.where(here, piece.column("sold").to_numpy(), 0)
            writer.append(with_column(piece, "sold", fresh).drop_columns(["known"]), published)
    return project


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    project = two_labels(tmp_path_factory.mktemp("labels"))
    gate = {"when": "gate", "label": "sale", "min_rows": 1000}
    project.pipeline["job"]["publish"] = gate
    project.write_pipeline()
    with jobs_in_this_process():
        return project, project.run("2026-03-01", "2026-03-03")


def unsaid(project: Project, window: int) -> int:
    """Batch rows of a window whose sale is null, or was known after the window's end only."""
    day = FIRST_DAY + (window - 1) * DAY
    table = pq.read_table(project.files / f"date={day:%Y-%m-%d}" / "part-0.parquet")
    end = np.datetime64((day + 2 * DAY).replace(tzinfo=None))
    late = table.column("known").to_numpy() >= end
    return int((late | np.asarray(table.column("sold").is_null())).sum())


@pytest.mark.guarantee(
    "one of several labels of a row is null, or was not known yet when its window ended",
    "the row is trained on for its other labels, and is counted for this one",
)
def test_a_row_counts_for_the_labels_that_it_says(trained: Trained) -> None:
    project, summary = trained
    assert summary["rows_agree"]
    total = 0
    for number, window in enumerate(summary["windows"]):
        history = window["sources"]["history"]
        expected = unsaid(project, number)
        assert 100 < expected < ROWS / 2
        learnt = history["learnt_rows"]
        assert history["trained_rows"] == learnt["click:mixture+head"] == ROWS
        assert history["label_not_known_rows"] == 0
        assert learnt["sale/label_not_known"] == expected
        assert learnt["sale:mixture+head"] == ROWS - expected
        total += expected
    (note,) = [note for note in summary["notes"] if "label sale" in note]
    assert note.startswith("source history: label sale was null, or not known")
    assert f"in {total:,} of {DAYS * ROWS:,} rows" in note


def test_each_label_is_judged_by_its_own_rows(trained: Trained) -> None:
    _, summary = trained
    assert (summary["first_label"], list(summary["labels"])) == ("click", ["sale"])
    sale = summary["labels"]["sale"]["pooled"]
    assert summary["pooled"]["label_completeness"]["share"] == 1.0
    assert 0.1 < sale["label_completeness"]["share"] < 0.3
    assert sale["event"]["judged"] < summary["pooled"]["event"]["judged"]
    for pooled in (summary["pooled"], sale):
        assert set(pooled["paradigms"]) == {"mixture+head", "stream", "mixture+head/memory"}
        assert pooled["scored_at"] == "event"
    figures = {name: each["auc"]["value"] for name, each in sale["event"]["answers"].items()}
    assert figures["mixture+head"] > 0.6
    assert figures["mixture+head"] > figures["stream"]
    # A stream that knows all clicks is no bad choice for them, and one for sales.
    bad = "stream is a bad choice here"
    assert not any(bad in warning for warning in summary["pooled"]["warnings"])
    assert sum(bad in warning for warning in sale["warnings"]) == 1
    assert not summary["advice"]["incomplete_labels"]
    assert summary["labels"]["sale"]["advice"]["declared"] == "mixture+head"
    assert summary["advice"]["declared"] == "mixture"
    assert summary["gate"]["words"].endswith("(label sale)")
    assert summary["gate"]["rows"] == summary["labels"]["sale"]["pooled"]["event"]["judged"]


def test_the_model_answers_both_by_name(trained: Trained) -> None:
    project, summary = trained
    outputs = json.loads((Path(summary["model"]) / "features.json").read_text())["outputs"]
    assert outputs == ["click", "sale", "memory_of_click", "memory_of_sale"]
    done = project.forebay("score", summary["model"], "--row", json.dumps(ROW), "--output", "json")
    (row,) = json.loads(done.stdout)
    assert list(row) == outputs
    assert 0 < row["sale"] < row["click"] < 1


def test_every_face_shows_both(trained: Trained, tmp_path: Path) -> None:
    project, _ = trained
    html = tmp_path / "report.html"
    shown = project.forebay("report", "ads", *RANGE, "--html", str(html)).stdout
    assert "label  click: figures that name no label are for this one" in shown
    assert "label sale  pooled  mixture+head  event auc" in shown
    assert "label sale  verdict  mixture+head" in shown
    page = html.read_text()
    assert "<h2>Label sale</h2>" in page
    assert "sale: calibration" in page
    why = project.forebay("why", "ads", "2026-03-03").stdout
    assert "sale:mixture+head" in why
    rows = unsaid(project, 2)
    told = "not trained on for label sale, null or not known in time: history"
    assert f"{told} {rows:,} of 3,000" in why
    assert f"label sale  window 2026-03-03  label not known {rows}" in shown
    assert f"<td>2026-03-03</td><td>{rows:,}</td>" in page
    evaluated = project.forebay("stage", "evaluate", "ads", "2026-03-02")
    assert "AUC of sale:mixture+head at publication " in evaluated.stderr
    last = evaluated.stderr.splitlines()[-1]
    assert re.match(r"window 2026-03-02: event AUC of mixture\+head .* rows judged$", last), last
    stage = json.loads(evaluated.stdout.splitlines()[-1])
    assert stage["labels_not_known"] == {"sale": {"history": unsaid(project, 1)}}
    assert stage["metrics"]["sale:stream"]["auc_true"] != stage["metrics"]["stream"]["auc_true"]
    explained = project.forebay("explain", "ads").stdout
    assert "label      sale: sold; weight 2" in explained
    checked = project.forebay("check", "--connect").stdout
    assert "labels  ads, click, clicks: 100%" in checked
    assert "advice  ads, sale:" in checked


def test_a_label_that_is_not_there_is_named_with_its_line(tmp_path: Path) -> None:
    project = two_labels(tmp_path)
    project.pipeline["job"]["publish"] = {"when": "gate", "label": "sael"}
    project.write_pipeline()
    done = project.forebay("check", check=False)
    assert done.returncode != 0
    text = (project.root / "config/pipelines/ads.yaml").read_text()
    line = 1 + text.partition("label: sael")[0].count("\n")
    said = done.stdout + done.stderr
    assert f"ads.yaml:{line}:" in said
    assert "publish.label: no label 'sael'. Declared labels: click, sale" in said
