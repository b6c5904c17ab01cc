"""Pipelines of the Airflow scenarios: many small ones in one configuration folder.

All but `nan` count instead of learning, so that no window starts TensorFlow. A pipeline without
catchup gets its newest closed window as soon as it is unpaused; `end` keeps those on old data
from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from support import airflow_data, independent
from support.airflow_data import HOUR, Stored, source
from support.projects import DAY, FIRST_DAY, Project, ads_pipeline

ADS_DAYS = 5
MANY_DAYS = 2
RECENT_DAYS = 2
HOURS_AHEAD = 48
ONE_SLOT = "one_slot"
LATE_SECONDS = 20
# One window of a small pipeline takes some 20 s of CPU, and windows of several run at a time.
WINDOW_SECONDS = 420


@dataclass(frozen=True)
class Pipeline:
    name: str
    start: datetime
    sources: dict[str, Stored]
    step: timedelta = DAY
    end: datetime | None = None
    schedule: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)

    def window(self, number: int) -> datetime:
        return self.start + number * self.step

    def key(self, number: int) -> str:
        return f"{self.window(number):%Y-%m-%d}" + (
            f"T{self.window(number):%H}" if self.step == HOUR else ""
        )

    def expected(self, root: Path, number: int) -> dict[str, independent.Sums]:
        return self.expected_until(root, number, first=number)

    def expected_until(
        self, root: Path, number: int, first: int = 0
    ) -> dict[str, independent.Sums]:
        """Rows and sums of windows `first` to `number`: what a model has seen after the last."""
        start, end = self.window(first), self.window(number + 1)
        return {name: stored.expected(root, start, end) for name, stored in self.sources.items()}

    def declaration(self) -> dict[str, Any]:
        declared = ads_pipeline()
        streams: dict[str, Any] = {}
        for name, stored in self.sources.items():
            streams[name] = {"sources": [name]}
            if stored.offset:
                streams[name]["offset"] = f"{stored.offset // HOUR}h"
        declared["dataset"] |= {
            "window": "1h" if self.step == HOUR else "1d",
            "start": f"{self.start:%Y-%m-%dT%H:%M:%SZ}",
            "streams": streams,
        }
        if self.end is not None:
            declared["dataset"]["end"] = f"{self.end:%Y-%m-%dT%H:%M:%SZ}"
        if self.schedule:
            declared["schedule"] = self.schedule
        if len(streams) == 1:
            declared["train"]["paradigm"] = "batch"
        return _merged(declared, self.spec)

    def write(self, project: Project) -> Path:
        return write_yaml(project, self.name, yaml.safe_dump(self.declaration(), sort_keys=False))


def write_yaml(project: Project, name: str, text: str) -> Path:
    path = project.root / "config" / "pipelines" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".new")
    temporary.write_text(text)
    temporary.rename(path)
    return path


_BASE = {"history": airflow_data.HISTORY, "clicks": airflow_data.CLICKS}
_MANY = {"many_history": airflow_data.MANY_HISTORY, "many_clicks": airflow_data.MANY_CLICKS}
_RECENT = {
    "recent_history": airflow_data.RECENT_HISTORY,
    "recent_clicks": airflow_data.RECENT_CLICKS,
}
_END = FIRST_DAY + 10 * DAY
# A trainer that is held by SIGSTOP is silent, not dead; minibatches are small, so that it is there
# to be held, and seals frequent, so that what follows a SIGKILL goes on from the middle.
_HELD = {
    "train": {"minibatch_rows": 64},
    "job": {"checkpoint": {"every_steps": 50}, "failover": {"heartbeat_timeout": "10m"}},
}

ADS = Pipeline(
    "ads",
    FIRST_DAY,
    {"ads_history": airflow_data.ADS_HISTORY, "ads_clicks": airflow_data.ADS_CLICKS},
    end=FIRST_DAY + ADS_DAYS * DAY,
)
NARROW = Pipeline(
    "narrow",
    FIRST_DAY + 10 * HOUR,
    _BASE,
    step=HOUR,
    end=FIRST_DAY + 13 * HOUR,
    schedule={"pool": ONE_SLOT, "grace": "0s"},
)
HOURS = Pipeline("hours", FIRST_DAY, _BASE, step=HOUR, end=FIRST_DAY + HOURS_AHEAD * HOUR)
CATCHUP = Pipeline(
    "catchup", airflow_data.today() - RECENT_DAYS * DAY, _RECENT, schedule={"catchup": True}
)
LATE = Pipeline(
    "late",
    FIRST_DAY,
    {
        "clicks": airflow_data.CLICKS,
        "marked": airflow_data.MARKED,
        "optional": airflow_data.OPTIONAL,
    },
    end=_END,
    schedule={"grace": "1s"},
)
NEVER = Pipeline("never", FIRST_DAY, {"never": airflow_data.NEVER}, end=_END)
MARKS = Pipeline("marks", FIRST_DAY, _MANY, end=_END, spec=_HELD)
KILLS = Pipeline(
    "kills", FIRST_DAY, _MANY, end=_END, schedule={"grace": "10s", "retry_delay": "2s"}, spec=_HELD
)
TORN = Pipeline("torn", FIRST_DAY, {"torn": airflow_data.TORN}, end=_END)
# No row is wrong: what it learns from the first ones makes the loss of the next ones infinite.
NAN = Pipeline(
    "nan",
    FIRST_DAY,
    {"history": airflow_data.HISTORY},
    end=_END,
    spec={
        "model": {
            "kind": "towers",
            "tower": {"hidden": [4]},
            "dense_learning_rate": 1e30,
            "embedding_learning_rate": 1e30,
        },
        "train": {"minibatch_rows": 256},
    },
)
# Dropped into a running Airflow: yesterday is its first and only closed window.
DROPPED = Pipeline("dropped", airflow_data.today() - DAY, _RECENT)
# Old data without an end: a schedule that begins where nothing is any more.
OLD = Pipeline("old", FIRST_DAY, _BASE)

SOURCES: dict[str, dict[str, Any]] = {
    **{name: source(stored) for name, stored in (_BASE | _MANY | ADS.sources).items()},
    **{name: source(stored, CATCHUP.start - 2 * DAY) for name, stored in _RECENT.items()},
    "marked": airflow_data.marked_source(airflow_data.MARKED, "30m", "fail"),
    "optional": airflow_data.marked_source(airflow_data.OPTIONAL, f"{LATE_SECONDS}s", "skip"),
    "never": airflow_data.marked_source(airflow_data.NEVER, f"{LATE_SECONDS}s", "fail"),
    "torn": airflow_data.by_day(airflow_data.TORN),
}
AT_START = (ADS, NARROW, HOURS, CATCHUP, LATE, NEVER, MARKS, KILLS, TORN, NAN)

FIVE_MISTAKES = """\
dataset:
  window: 2h
  start: 2026-03-01
  event_id: event
  label: {column: clicked}
  streams:
    recent_history: {sources: [recent_history], offset: 24hours}
    recent_clicks: {sources: [recent_clicks], wieght: 2}
  features:
    user: {encode: hash, buckets: many}
model: {kind: towels}
"""
MISTAKES = ("2h", "24hours", "wieght", "many", "towels")


def write_project(project: Project) -> None:
    airflow_data.write_pair(project.root, _BASE.values(), FIRST_DAY, range(3))
    airflow_data.write_pair(project.root, ADS.sources.values(), FIRST_DAY, range(ADS_DAYS))
    airflow_data.write_pair(project.root, _RECENT.values(), CATCHUP.start, range(RECENT_DAYS))
    airflow_data.write_many(project.root, MANY_DAYS)
    airflow_data.write_marked(project.root, airflow_data.MARKED, [True, False, True])
    airflow_data.write_marked(project.root, airflow_data.OPTIONAL, [True, True, False])
    airflow_data.write_marked(project.root, airflow_data.NEVER, [False])
    airflow_data.write_torn(project.root)
    for name, spec in SOURCES.items():
        project.write_source(name, spec)
    for pipeline in AT_START:
        pipeline.write(project)


def _merged(base: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in changes.items():
        old = merged.get(key)
        merged[key] = (
            _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
        )
    return merged
