"""Late labels whose runs end with the same bytes each time, whatever was killed on the way.

Batch rows happen in even hours and stream rows are published in odd ones, each hour fills its
minibatches, and one thread computes. So two runs have to agree in scores, row sums, and every
variable, those of the delay heads among them. With `sale` there are two labels: clicks, of which
only the stream's own copy says whether they were known, and sales, which say when they were known,
and of some rows nobody knows. For half a day no click is published, so that its guard holds rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from forebay.executors.model_line.chain import ModelChain
from forebay.executors.window_files.scores import Segments
from forebay.home.paths import Home
from forebay.mixture.tensorflow_start import start_tensorflow
from support.declarations import COLUMNS
from support.jobs_here import jobs_in_this_process
from support.kills import summary_of, wait_for_rows
from support.parquet_files import null_labels
from support.projects import DAY, FIRST_DAY, Project, ads_pipeline, declared_project, with_column
from support.truth_rows import stored_of

HOUR = timedelta(hours=1)
WAIT_HOURS = 13
SALE_HOURS = 20
MINIBATCH_ROWS = 128
HOUR_ROWS = 2 * MINIBATCH_ROWS
DAY_ROWS = 12 * HOUR_ROWS
DAYS = 3
WINDOWS = [f"2026-03-0{number}" for number in range(1, DAYS + 1)]
NULL_EVERY = 50
# When the stream of two labels publishes no click: in the middle of the second window.
SILENT_FROM, SILENT_TO = (FIRST_DAY + DAY + hours * HOUR for hours in (6, 18))
_US = timedelta(microseconds=1)
_SALE_COLUMNS = {**COLUMNS, "sold": "int"}
_LABELS: dict[str, Any] = {
    "click": {"column": "clicked"},
    "sale": {"column": "sold", "known_at": "known", "weight": 2.0},
}


def events(day: datetime, *, sale: bool = False) -> pa.Table:
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
    found = pa.table(
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
    if not sale:
        return found
    sold = clicked & (rng.random(DAY_ROWS) < 0.6)
    waited = (rng.exponential(SALE_HOURS, DAY_ROWS) * (HOUR // _US)).astype("timedelta64[us]")
    found = found.append_column("sold", pa.array(sold.astype(np.int64)))
    return found.append_column("known", pa.array(at + waited, pa.timestamp("us", tz="UTC")))


def publications(day: datetime, *, sale: bool = False) -> Iterator[tuple[pa.Table, datetime]]:
    """What the stream says of a day's events 13 hours later, as far as labels are known then."""
    table = events(day, sale=sale)
    here = np.asarray(table.column("delay")) < WAIT_HOURS
    table = with_column(table, "clicked", np.where(here, np.asarray(table.column("clicked")), 0))
    for number in range(12):
        commit = day + (2 * number + WAIT_HOURS) * HOUR + HOUR / 2
        rows = table.slice(number * HOUR_ROWS, HOUR_ROWS).drop_columns(["delay"])
        if sale:
            if SILENT_FROM <= commit < SILENT_TO:
                rows = with_column(rows, "clicked", np.zeros(HOUR_ROWS, np.int64))
            known = rows.column("known").to_numpy() <= np.datetime64(commit.replace(tzinfo=None))
            fresh = np.where(known, rows.column("sold").to_numpy(), 0)
            rows = with_column(rows, "sold", fresh).drop_columns(["known"])
        yield rows, commit


def written(root: Path, *, sale: bool = False) -> Path:
    from forebay.datatasks.sources.log.writer import LogWriter

    history = {"columns": {**_SALE_COLUMNS, "known": "timestamp"}} if sale else None
    clicks = {"columns": _SALE_COLUMNS} if sale else None
    made = declared_project(root, pipeline(sale=sale), history=history, clicks=clicks)
    for number in range(-1, DAYS - 1):
        day = FIRST_DAY + number * DAY
        path = made.files / f"date={day:%Y-%m-%d}" / "part-0.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(events(day, sale=sale).drop_columns(["delay"]), path)
        if sale:
            null_labels(path, NULL_EVERY, "sold")
    log = LogWriter(made.log, 0)
    for number in range(DAYS):
        for rows, commit in publications(FIRST_DAY + number * DAY, sale=sale):
            if commit < FIRST_DAY + DAYS * DAY:
                log.append(rows, commit)
    return made.root


def pipeline(*, sale: bool = False) -> dict[str, Any]:
    made = ads_pipeline(
        "towers",
        checkpoint={"every_steps": 5},
        roles={"trainer": {"threads": 1}},
        # However busy the machine is.
        buffers={"settle_seconds": 600},
        failover={"restarts_max": 20},
    )
    made["train"] |= {
        "delay": "head",
        "compare": ["stream", {"paradigm": "stream", "delay": "head"}],
        "minibatch_rows": MINIBATCH_ROWS,
    }
    if sale:
        del made["dataset"]["label"]
        made["dataset"]["named_labels"] = {name: dict(each) for name, each in _LABELS.items()}
    return made


def arguments(made: Project, first: str = WINDOWS[0], last: str = WINDOWS[-1]) -> tuple[str, ...]:
    return (
        *("run", "ads", "--from", first, "--to", last),
        *("--summary", str(made.home / "summary.json")),
    )


def models(made: Project) -> dict[str, bytes]:
    found = {}
    for window in WINDOWS:
        folder = stored_of(made.home, "ads", window, "checkpoint")
        assert folder is not None
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            if path.name != "seal.json":
                found[f"{window}/{path.relative_to(folder)}"] = path.read_bytes()
    return found


def delay_heads(made: Project, name: str = "delay_head") -> list[dict[str, Any]]:
    """The tower's weights of a delay head as each window left them, by variable."""
    start_tensorflow(1)
    import tensorflow as tf

    found = []
    for window in WINDOWS:
        folder = stored_of(made.home, "ads", window, "checkpoint")
        assert folder is not None
        file = tf.train.load_checkpoint(str(folder / "model" / "variables"))
        names = [each for each in file.get_variable_to_shape_map() if f"{name}_tower_weigh" in each]
        found.append({each: file.get_tensor(each) for each in names})
    return found


def scores(made: Project, labels: tuple[str, ...] = ("",)) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for window in WINDOWS:
        for label in labels:
            segments = Segments(window, stored_of(made.home, "ads", window, "scores"), label)
            for kind, table in (
                ("scores", segments.scores()),
                ("labels", segments.labels()),
                ("judged", segments.judged()),
            ):
                found[f"{window}/{label}/{kind}"] = [] if table is None else table.to_pylist()
    return found


def held_rows(made: Project, window: str, label: str = "") -> list[int]:
    table = Segments(window, stored_of(made.home, "ads", window, "scores"), label).published()
    assert table is not None
    return list(table.filter(table.column("held")).column("event_id").to_pylist())


def metrics(made: Project) -> list[Any]:
    summary = summary_of(made.home / "summary.json")
    assert summary["rows_agree"]
    pooled = [summary["seen"], summary["pooled"], summary.get("labels")]
    return [*pooled, [figures(each) for each in summary["windows"]]]


def judgements(made: Project) -> list[Any]:
    """Figures of each window as they are stored; completed when its last labels came."""
    chain = ModelChain(Home(made.home), "ads")
    stored = chain.judgements(list(chain.newest_of(WINDOWS).values()))
    return [figures(stored[window].model_dump(mode="json")) for window in WINDOWS]


def figures(window: dict[str, Any]) -> list[Any]:
    """What is said of one window, but not how often it was begun."""
    learnt = {name: source["learnt_rows"] for name, source in window["sources"].items()}
    names = ("metrics", "label_completeness", "event", "labels")
    return [learnt, *(window.get(name) for name in names)]


@dataclass(frozen=True)
class Runs:
    """A project's rows, and what a run makes of them that nobody kills."""

    unkilled: Project
    labels: tuple[str, ...]

    @classmethod
    def of(cls, folder: Path, *, sale: bool = False) -> Runs:
        made = Project(written(folder / "rows", sale=sale), home_folder=folder / "home")
        with jobs_in_this_process():  # those that are killed are processes
            made.forebay(*arguments(made))
        return cls(made, ("", "sale") if sale else ("",))

    def begin(self, home: Path) -> Project:
        return Project(self.unkilled.root, home_folder=home)

    def assert_same(self, killed: Project) -> None:
        # As text: NaN is no equal of itself.
        assert repr(scores(killed, self.labels)) == repr(scores(self.unkilled, self.labels))
        assert repr(metrics(killed)) == repr(metrics(self.unkilled))
        wanted, found = models(self.unkilled), models(killed)
        assert found.keys() == wanted.keys()
        assert [name for name in wanted if found[name] != wanted[name]] == []


wait_until = partial(wait_for_rows, seconds=400)  # others may be trained before the window
