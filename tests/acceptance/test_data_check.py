"""`forebay check --connect` on rows: late labels, missing positives, vocabularies, nulls."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.links import judgement
from support.model_lines import record_link
from support.projects import (
    DAY,
    FIRST_DAY,
    Project,
    ads_pipeline,
    ads_project,
    declared_project,
    parts_of,
    rows_of_day,
    with_column,
    write_history,
)

from forebay.datatasks.sources.log.writer import LogWriter
from forebay.executors.model_line.chain import ModelChain
from forebay.home.paths import Home

ROWS = 3_000
QUARTER = timedelta(minutes=15)
Written = Callable[[float], Path]


def write_late(root: Path, known: float) -> Path:
    """Three days of batch rows, and of a stream that knows a share of their positives.

    Rows of a quarter of an hour are published an hour after its end.
    """
    for day in (FIRST_DAY + number * DAY for number in range(3)):
        seed = 100 + (day - FIRST_DAY) // DAY
        write_history(root / "history", day, ROWS, seed=seed)
        table, writer = rows_of_day(day, ROWS, seed), LogWriter(root / "clicks", 0)
        shown = np.random.default_rng(5).random(ROWS) < known
        labels = np.where(shown, table.column("clicked").to_numpy(), 0)
        for part, end in parts_of(with_column(table, "clicked", labels), day, QUARTER):
            writer.append(part, end + timedelta(hours=1))
    return root


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Rows by the share of positives that is known; written once."""
    return cache(lambda known: write_late(tmp_path_factory.mktemp("late"), known))


def late_project(
    root: Path, data: Path, source: dict[str, Any] | None = None, **train: Any
) -> Project:
    pipeline = ads_pipeline("towers")
    pipeline["model"]["mixture"] = {"embeddings": "separate"}
    pipeline["train"] |= train
    project = declared_project(root, pipeline, clicks=source)
    (root / "data").symlink_to(data)
    return project


def checked(project: Project, *more: str) -> tuple[int, list[str], str]:
    done = project.forebay("check", "--connect", *more, check=False)
    return done.returncode, done.stdout.splitlines(), done.stderr


def place_of(project: Project, key: str) -> str:
    """File, line and column of a key that the pipeline's file has once."""
    lines = (project.root / "config/pipelines/ads.yaml").read_text().splitlines()
    ((number, column),) = [
        (index, line.index(key) + 1)
        for index, line in enumerate(lines, 1)
        if line.strip().startswith(key)
    ]
    return f"config/pipelines/ads.yaml:{number}:{column}: "


def test_late_labels_are_an_error_at_the_paradigm(tmp_path: Path, written: Written) -> None:
    project = late_project(tmp_path, written(0.45))
    code, lines, _ = checked(project)
    assert code == 1
    error, labels = lines
    assert error.startswith(place_of(project, "paradigm:"))
    share, low, high = map(int, re.findall(r"(\d+)%", error)[:3])
    assert 40 <= low <= share <= high <= 50
    assert "positives are known when the stream row is published; the others train as nega" in error
    assert "train.delay: head is recommended: expected difference in AUC against mixture" in error
    assert error.endswith("to train anyway, write `train.accept: [incomplete_labels]`")
    assert labels.startswith(f"labels  ads, clicks: {share}% ({low}%-{high}%) of ")
    (found,) = json.loads("\n".join(checked(project, "--output", "json")[1]))
    assert found["code"] == "incomplete-labels"


def test_late_labels_are_an_error_of_one_tower_that_goes_on_with_the_stream(
    tmp_path: Path, written: Written
) -> None:
    project = late_project(tmp_path, written(0.45), paradigm="batch_then_stream")
    code, lines, _ = checked(project)
    assert code == 1
    assert lines[0].startswith(place_of(project, "paradigm:"))
    assert "the others train as negatives, and batch_then_stream does not correct" in lines[0]
    assert "train.delay: head" in lines[0]
    assert "is recommended: expected difference in AUC against batch_then_stream" in lines[0]
    project.pipeline["train"]["delay"] = "head"
    project.write_pipeline()
    code, lines, notes = checked(project)
    assert (code, notes) == (0, "")
    assert lines[1].startswith("advice  ads: ")


def test_accepted_late_labels_are_a_note(tmp_path: Path, written: Written) -> None:
    project = late_project(tmp_path, written(0.45), accept=["incomplete_labels"])
    code, lines, notes = checked(project)
    assert (code, lines[-1]) == (0, "2 sources, 1 pipeline: no problems")
    assert notes.startswith(place_of(project, "paradigm:") + "note: 4")
    assert "train.accept" not in notes


def test_what_the_line_has_measured_goes_first(tmp_path: Path, written: Written) -> None:
    project = late_project(tmp_path, written(1.0))
    chain = ModelChain(Home(project.home), "ads")
    for day, gain in ((20, 0.02), (21, 0.022), (22, 0.018)):
        link = record_link(chain, f"2026-02-{day}", {"history": 1})
        row = {"positives": 50, "rows": 200, "seeds": 1}
        answers = {"mixture": row | {"auc": 0.7}, "mixture+fnw": row | {"auc": 0.7 + gain}}
        event = {"complete": True, "answers": answers}
        chain.judge(link, judgement(link, event=event))
    _, lines, notes = checked(project)
    told = "+.0200 ± .0090 in windows of this line (1 seed)"
    assert (notes, lines[1].partition("mixture: ")[2]) == ("", told)
    project.environment["FOREBAY_HOME"] = str(project.root / "config/sources/history.yaml")
    code, lines, _ = checked(project)
    assert (code, "windows of this line" in lines[2]) == (0, False)
    assert lines[0].startswith("advice  ads: without what line `main` has measured: /")


LATE = r"labels  ads, clicks: 4\d% .* after the event \(median\); by age of.*\nadvice  ads: "
COMPLETE = r"labels  ads, clicks: 100% \("


@pytest.mark.parametrize(
    ("known", "train", "said"),
    [
        (0.45, {"delay": "head"}, LATE),
        (0.45, {"paradigm": "batch"}, ""),
        (1.0, {"paradigm": "mixture"}, COMPLETE),
        (1.0, {"paradigm": "stream"}, COMPLETE),
    ],
    ids=["corrected", "batch", "complete-mixture", "complete-stream"],
)
def test_labels_that_are_no_problem_and_no_note(
    tmp_path: Path, written: Written, known: float, train: dict[str, Any], said: str
) -> None:
    code, lines, notes = checked(late_project(tmp_path, written(known), **train))
    assert (code, notes, lines[-1]) == (0, "", "2 sources, 1 pipeline: no problems")
    assert re.match(said, "\n".join(lines))


def test_events_without_twins_are_unknown(tmp_path: Path) -> None:
    project = late_project(tmp_path, write_late(tmp_path / "rows", known=0.2))
    for file in project.files.rglob("*.parquet"):
        table = pq.read_table(file)
        events = table.column("event").to_numpy() + 7 * 10**15
        pq.write_table(table.set_column(0, "event", [events]), file)
    code, lines, _ = checked(project)
    assert code == 0
    assert "unknown how many positives are known at publication: 0 of" in lines[0]
    assert len(lines) == 2  # and nothing is recommended


def test_a_stream_that_does_not_say_when_its_events_happened(
    tmp_path: Path, written: Written
) -> None:
    project = late_project(tmp_path, written(0.45), {"event_time": None})
    code, lines, _ = checked(project)
    assert code == 1
    assert re.search(r": 4\d% \(", lines[0])
    assert "after the event" not in lines[1]
    assert "by age" not in lines[1]


def test_a_positive_that_never_occurs_is_an_error_that_can_be_accepted(tmp_path: Path) -> None:
    project = ads_project(tmp_path)
    project.pipeline["dataset"]["label"]["positive"] = 2
    project.write_pipeline()
    code, lines, _ = checked(project)
    assert code == 1
    place = place_of(project, "positive:")
    assert lines[0].startswith(f"{place}label: positive: 2 never occurs in")
    assert re.search(r"column 'clicked' has '0' \([\d,]+\), '1' \([\d,]+\)", lines[0])
    project.pipeline["train"]["accept"] = ["no_positives"]
    project.write_pipeline()
    code, _, notes = checked(project)
    assert code == 0
    assert "note: label: positive: 2 never occurs" in notes


def test_vocabularies_nulls_and_crowded_buckets_are_reported(tmp_path: Path) -> None:
    project = ads_project(tmp_path)
    project.pipeline["dataset"]["features"] |= {
        "user": {"encode": "vocabulary", "values": ["u1", "u2"]},
        "tags": {"encode": "hash", "buckets": 10},
    }
    project.write_pipeline()
    for file in project.files.rglob("*.parquet"):
        table = pq.read_table(file)
        label = [None if row % 5 else 1 for row in range(table.num_rows)]
        place = table.schema.get_field_index("clicked")
        pq.write_table(table.set_column(place, "clicked", [label]), file)
    code, _, notes = checked(project)
    assert code == 0
    assert "columns.clicked" not in notes
    nulls, vocabulary, buckets = notes.splitlines()
    assert nulls.startswith("config/sources/history.yaml:")
    assert "column 'clicked' is null in 80% of" in nulls
    assert "write `label_null: dead_letter`" in nulls
    assert vocabulary.startswith(place_of(project, "values:") + "note: feature 'user': ")
    assert re.search(r"column 'user' are outside the vocabulary .* 'u3' \(\d", vocabulary)
    assert "feature 'tags': 50 different values in the sample share 10 buckets" in buckets


def test_rows_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    project = ads_project(tmp_path)
    file = min(project.files.rglob("*.parquet"))
    good = file.read_bytes()
    middle = len(good) // 2
    file.write_bytes(good[:middle] + bytes(64) + good[middle + 64 :])
    code, lines, notes = checked(project)
    assert (code, notes, lines[-1]) == (0, "", "2 sources, 1 pipeline: no problems")
