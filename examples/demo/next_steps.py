"""What to type and click next, printed so that it works as it is."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path

EXAMPLE_ROW = {
    "carrier": "UA",
    "tailnum": "N14228",
    "flight": 1545,
    "origin": "EWR",
    "dest": "IAH",
    "sched_dep": "2013-06-15T17:30:00Z",
    "distance": 1400,
}
# Three mistakes; `check` reports each with its position and the right spelling.
_BROKEN_SOURCE = """\
description: A source with two mistakes
kind: parqet
options:
  path: data/clicks
columns:
  id: int
  at: timestmp
  clicked: int
event_time: at
"""
_BROKEN_PIPELINE = """\
description: A pipeline with one
dataset:
  window: 1d
  start: 2013-06-01
  event_id: id
  label:
    colum: clicked
  streams:
    history:
      sources: [clicks]
  features:
    id:
      encode: hash
      buckets: 1000
"""


def score_command(model: str) -> str:
    return shlex.join([_program(), "score", model, "--row", json.dumps(EXAMPLE_ROW)])


def check_command(folder: Path) -> str:
    """Write a broken project to `folder`; the command that checks it, with exit code 1."""
    shutil.rmtree(folder, ignore_errors=True)
    for part, name, text in (
        ("sources", "clicks", _BROKEN_SOURCE),
        ("pipelines", "broken", _BROKEN_PIPELINE),
    ):
        path = folder / part / f"{name}.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return shlex.join([_program(), "check", "--config", _short(folder)])


def up_command(home: Path, config: Path) -> str:
    words = [_program(), "up", "--config", _short(config)]
    return f"FOREBAY_HOME={shlex.quote(str(home))} {shlex.join(words)}"


def down_command(home: Path) -> str:
    return f"FOREBAY_HOME={shlex.quote(str(home))} {shlex.join([_program(), 'down'])}"


def backfill_link(url: str, dag_id: str) -> str:
    """The page closest to the backfill form, and what to click there."""
    return f"{url}/dags/{dag_id}  there: Trigger, then Backfill"


def _program() -> str:
    return _short(Path(sys.executable).with_name("forebay"))


def _short(path: Path) -> str:
    """The path as it would be typed from the current folder."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative
