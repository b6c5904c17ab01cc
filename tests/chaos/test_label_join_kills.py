"""Kills while labels are joined and a head learns how late they are: nothing of it shows.

The rows are made so that a run is the same each time: batch rows happen in even hours and stream
rows are published in odd ones, each hour fills its minibatches, and one thread computes. So a
killed run has to end with the very bytes of one that was left alone: scores, row sums, and every
variable, those of the delay head among them.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.kills import kill_role, kill_tree, running, summary_of, used_rows
from support.projects import DAY, FIRST_DAY, Project, ads_pipeline, declared_project
from support.truth_rows import stored_of

from forebay.config.load import load_project
from forebay.datatasks.ledger import Ledger
from forebay.datatasks.sources.log.writer import LogWriter
from forebay.executors.label_join.join import LabelJoin
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.window_files.scores import SCORES_FOLDER, Segments
from forebay.home.paths import Home
from forebay.mixture.minibatch import Minibatch
from forebay.mixture.tensorflow_start import start_tensorflow
from forebay.system.instants import to_us

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(900)]
HOUR = timedelta(hours=1)
END_SECONDS = 400.0
WAIT_HOURS = 13
MINIBATCH_ROWS = 128
HOUR_ROWS = 2 * MINIBATCH_ROWS
DAY_ROWS = 12 * HOUR_ROWS
DAYS = 3
WINDOWS = [f"2026-03-0{number}" for number in range(1, DAYS + 1)]


def events(day: datetime) -> pa.Table:
    """Events of one day, in even hours, with complete labels and how long those took, in hours."""
    seed = (day - FIRST_DAY) // DAY + 1
    rng = np.random.default_rng(seed)
    user = rng.zipf(1.3, DAY_ROWS) % 200
    clicked = rng.random(DAY_ROWS) < 1 / (1 + np.exp(2 - (user % 7) / 2))
    hour = np.repeat(np.arange(12) * 2, HOUR_ROWS)
    minute = np.tile(np.sort(rng.integers(0, 59, HOUR_ROWS)), 12)
    start = np.datetime64(day.replace(tzinfo=None), "us")
    at = start + (hour * 60 + minute) * np.timedelta64(60_000_000, "us")
    none = np.zeros(DAY_ROWS + 1, np.int32)
    return pa.table(
        {
            "event": np.arange(DAY_ROWS) + seed * 1_000_000,
            "at": pa.array(at, pa.timestamp("us", tz="UTC")),
            "user": pa.array(np.char.add("u", user.astype(str))),
            "price": rng.gamma(2.0, 10.0, DAY_ROWS),
            "mobile": rng.random(DAY_ROWS) < 0.5,
            "tags": pa.ListArray.from_arrays(pa.array(none), pa.array([], pa.string())),
            "clicked": clicked.astype(np.int64),
            "delay": rng.exponential(WAIT_HOURS, DAY_ROWS),
        }
    )


def publications(day: datetime) -> Iterator[tuple[pa.Table, datetime]]:
    """What the stream says of a day's events 13 hours later, as far as labels are known then."""
    table = events(day)
    known = np.asarray(table.column("delay")) < WAIT_HOURS
    fresh = np.where(known, np.asarray(table.column("clicked")), 0)
    table = table.set_column(table.schema.get_field_index("clicked"), "clicked", pa.array(fresh))
    for number in range(12):
        rows = table.slice(number * HOUR_ROWS, HOUR_ROWS).drop_columns(["delay"])
        yield rows, day + (2 * number + WAIT_HOURS) * HOUR + HOUR / 2


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's YAML and rows; each run has a home of its own."""
    made = declared_project(tmp_path_factory.mktemp("late"))
    made.pipeline = pipeline()
    made.write_pipeline()
    for number in range(-1, DAYS - 1):
        day = FIRST_DAY + number * DAY
        folder = made.files / f"date={day:%Y-%m-%d}"
        folder.mkdir(parents=True)
        table = events(day).drop_columns(["delay"])
        pq.write_table(table, folder / "part-0.parquet")
    log = LogWriter(made.log, 0)
    for number in range(DAYS):
        for rows, commit in publications(FIRST_DAY + number * DAY):
            if commit < FIRST_DAY + DAYS * DAY:
                log.append(rows, commit)
    return made.root


def pipeline() -> dict[str, Any]:
    made = ads_pipeline(
        "towers",
        checkpoint={"every_steps": 5},
        roles={"trainer": {"threads": 1}},
        # A partial minibatch would leave by the clock.
        buffers={"flush_seconds": 600},
        failover={"restarts_max": 20},
    )
    made["train"] |= {
        "delay": "head",
        "compare": ["stream", {"paradigm": "stream", "delay": "head"}],
        "minibatch_rows": MINIBATCH_ROWS,
    }
    return made


def project(written: Path, home: Path) -> Project:
    return Project(written, pipeline(), home_folder=home)


def arguments(made: Project) -> tuple[str, ...]:
    return (
        *("run", "ads", "--from", WINDOWS[0], "--to", WINDOWS[-1]),
        *("--summary", str(made.home / "summary.json")),
    )


@pytest.fixture(scope="module")
def unkilled(written: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = project(written, tmp_path_factory.mktemp("unkilled") / "home")
    made.forebay(*arguments(made), timeout_seconds=END_SECONDS)
    return made


def wait_until(made: Project, window: str, rows: int, run: subprocess.Popen[str]) -> None:
    """Return as soon as a window has used so many rows; others may be trained before it."""
    deadline = time.monotonic() + END_SECONDS
    while used_rows(made, window) < rows:
        assert run.poll() is None, f"it ended before {rows} rows: {run.communicate()[0]}"
        assert time.monotonic() < deadline, f"only {used_rows(made, window)} rows"
        time.sleep(0.002)


def models(made: Project) -> dict[str, bytes]:
    """Every file of each window's model, by window and name."""
    found = {}
    for window in WINDOWS:
        folder = stored_of(made.home, "ads", window, "checkpoint")
        assert folder is not None
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            if path.name != "seal.json":
                found[f"{window}/{path.relative_to(folder)}"] = path.read_bytes()
    return found


def scores(made: Project) -> dict[str, list[dict[str, Any]]]:
    """All rows of each window's segments, in the order in which they were scored."""
    found = {}
    for window in WINDOWS:
        segments = Segments(window, stored_of(made.home, "ads", window, "scores"))
        for kind, table in (
            ("scores", segments.scores()),
            ("labels", segments.labels()),
            ("judged", segments.judged()),
        ):
            found[f"{window}/{kind}"] = [] if table is None else table.to_pylist()
    return found


def metrics(made: Project) -> list[Any]:
    summary = summary_of(made.home / "summary.json")
    assert summary["rows_agree"]
    windows = [[each["metrics"], each["event"]] for each in summary["windows"]]
    return [summary["seen"], summary["pooled"], windows]


def assert_same(killed: Project, unkilled: Project) -> None:
    assert repr(scores(killed)) == repr(scores(unkilled))  # NaN is no equal of itself
    assert repr(metrics(killed)) == repr(metrics(unkilled))
    wanted = models(unkilled)
    found = models(killed)
    assert found.keys() == wanted.keys()
    assert [name for name in wanted if found[name] != wanted[name]] == []


def test_batch_rows_find_their_copies_in_earlier_windows_and_in_their_own(
    unkilled: Project,
) -> None:
    """Of the events of March 2nd those before 11:00 were published that day, others on the 3rd.

    In the run of the 3rd an event of hour h is served in hour h, and its copy h + 13 - 24 hours
    after midnight: 11 hours before it, which is more than enough.
    """
    loaded = load_project(unkilled.root / "config")
    spec = loaded.pipeline("ads")
    home = Home(unkilled.home)
    chain = ModelChain(home, "ads")
    join = LabelJoin(chain, spec, loaded.sources)
    plan = Ledger(home, "ads").plan(WINDOWS[2], 1)
    join.begin(plan, chain.newest(WINDOWS[1]))
    folder = stored_of(unkilled.home, "ads", WINDOWS[2], SCORES_FOLDER)
    assert folder is not None
    join.resume(plan, folder)
    table = events(FIRST_DAY + DAY)
    labels = np.asarray(table.column("clicked"), np.float32)
    rows = len(labels)
    found = join.joined(
        Minibatch(
            feed="batch",
            row_ids=np.arange(rows),
            event_ids=event_ids(unkilled, WINDOWS[2]),
            sources=np.zeros(rows, np.int32),
            labels=labels,
            dense=np.zeros((rows, 0), np.float32),
            ids=np.zeros((rows, 0), np.int64),
            event_times=np.array([to_us(at) for at in table.column("at").to_pylist()]),
        )
    )
    assert found.waits is not None
    assert found.known is not None
    minutes = np.array([at.minute for at in table.column("at").to_pylist()])
    np.testing.assert_allclose(found.waits, (WAIT_HOURS + 0.5) * 3600 - minutes * 60)
    positive = labels > 0.5
    known = np.asarray(table.column("delay")) < WAIT_HOURS
    np.testing.assert_array_equal(found.known[positive], known[positive])
    assert 0.3 < found.known[positive].mean() < 0.9


def test_the_head_learns_from_what_was_found(unkilled: Project) -> None:
    """In the first window no batch row has a copy: the stream begins with it."""
    start_tensorflow(1)
    import tensorflow as tf

    heads = []
    for window in WINDOWS:
        folder = stored_of(unkilled.home, "ads", window, "checkpoint")
        assert folder is not None
        file = tf.train.load_checkpoint(str(folder / "model" / "variables"))
        names = [
            name for name in file.get_variable_to_shape_map() if "delay_head_tower_weights" in name
        ]
        assert names
        heads.append({name: file.get_tensor(name) for name in names})
    first, *others = heads
    for later in others:
        assert any(not np.array_equal(first[name], later[name]) for name in first)


def event_ids(made: Project, window: str) -> Any:
    """Of a window's batch rows, in the order of the events."""
    segments = Segments(window, stored_of(made.home, "ads", window, SCORES_FOLDER))
    table = segments.labels()
    assert table is not None
    times = table.column("event_time").to_numpy()
    assert np.all(np.diff(times) >= 0)
    return table.column("event_id").to_numpy()


def test_events_of_earlier_windows_are_judged_by_the_models_of_their_time(
    unkilled: Project,
) -> None:
    """Nothing had ended before the events of the first two days, and the third day's still come."""
    summary = summary_of(unkilled.home / "summary.json")
    blocks = [window["event"] for window in summary["windows"]]
    assert [block["judged"] for block in blocks] == [0, DAY_ROWS, 0]
    assert [block["unjudged"]["before"] for block in blocks] == [DAY_ROWS, 0, 0]
    assert [block["complete"] for block in blocks] == [True, True, False]
    judged = scores(unkilled)[f"{WINDOWS[2]}/judged"]
    assert {row["link"] for row in judged} == {f"{WINDOWS[0]} generation 1"}


def test_two_runs_that_nobody_kills_are_the_same(
    written: Path, unkilled: Project, tmp_path: Path
) -> None:
    """What the other tests stand on."""
    made = project(written, tmp_path / "home")
    made.forebay(*arguments(made), timeout_seconds=END_SECONDS)
    assert_same(made, unkilled)


@pytest.mark.parametrize("window", WINDOWS[1:])
def test_a_trainer_that_dies_twice(
    written: Path, unkilled: Project, tmp_path: Path, window: str
) -> None:
    made = project(written, tmp_path / "home")
    shares = sorted(random.uniform(0.02, 0.95) for _ in range(2))
    with running(made, *arguments(made)) as run:
        for share in shares:
            wait_until(made, window, int(share * 2 * DAY_ROWS), run)
            kill_role(made, "trainer")
        output, _ = run.communicate(timeout=END_SECONDS)
    assert run.returncode == 0, f"killed at {shares}: {output}"
    assert summary_of(made.home / "summary.json")["restarts"]["trainer"] == 2
    assert_same(made, unkilled)


def test_everything_dies_as_a_window_begins(
    written: Path, unkilled: Project, tmp_path: Path
) -> None:
    """While the join reads earlier windows, or just after."""
    made = project(written, tmp_path / "home")
    with running(made, *arguments(made)) as run:
        wait_until(made, WINDOWS[1], 1, run)
        kill_tree(made, run)
    made.forebay(*arguments(made), timeout_seconds=END_SECONDS)
    assert_same(made, unkilled)
