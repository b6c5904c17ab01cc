"""What windows have to leave behind, compared with counts that share nothing with Forebay."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from support.airflow_data import together
from support.airflow_pipelines import Pipeline
from support.projects import Project

Json = dict[str, Any]


def generations(project: Project, pipeline: Pipeline, number: int) -> list[int]:
    """Trained generations of a window, from the model folders."""
    folder = project.home / "models" / pipeline.name / "main" / pipeline.key(number)
    return sorted(int(path.parent.name[1:]) for path in folder.glob("g*/window.json"))


def link(project: Project, pipeline: Pipeline, number: int, generation: int = 0) -> Json:
    """What training a window left; the newest generation unless another is named."""
    found = generations(project, pipeline, number)
    assert found, f"window {pipeline.key(number)} of {pipeline.name} has no model"
    folder = project.home / "models" / pipeline.name / "main" / pipeline.key(number)
    path: Path = folder / f"g{generation or found[-1]}" / "window.json"
    text: Json = json.loads(path.read_text())
    return text


def trained(of: Json) -> dict[str, Json]:
    """Rows and row sums of this window alone: the model's sums after it less those before."""
    none = {"rows": 0, "sum": 0, "sum_of_squares": 0}
    return {
        name: together(
            [after, {key: -value for key, value in of["base_seen"].get(name, none).items()}]
        )
        for name, after in of["seen"].items()
    }


def assert_exact(
    project: Project, pipeline: Pipeline, numbers: Sequence[int], without: Sequence[str] = ()
) -> None:
    """Rows and sums of each window, and of all windows up to it, equal an independent count.

    `without`: sources that the last of the windows goes on without.
    """
    for number in numbers:
        skipped = without if number == numbers[-1] else ()
        found = link(project, pipeline, number)
        counted = pipeline.expected(project.root, number)
        none = {"rows": 0, "sum": 0, "sum_of_squares": 0}
        counted |= dict.fromkeys(skipped, none)
        assert trained(found) == counted, f"window {pipeline.key(number)} of {pipeline.name}"
        if not skipped:
            assert all(each["rows"] > 0 for each in counted.values()), "nothing was compared"
            assert found["seen"] == pipeline.expected_until(project.root, number)


def assert_in_order(project: Project, pipeline: Pipeline, numbers: Sequence[int]) -> None:
    """Each window began after the one before it had ended, from that window's newest model."""
    before: Json | None = None
    for number in numbers:
        found = link(project, pipeline, number)
        if before is not None:
            assert found["parent"] == {key: before[key] for key in ("window", "generation")}
            assert _at(found["started_at"]) >= _at(before["finished_at"])
        before = found


def served(project: Project, pipeline: Pipeline) -> tuple[str, int]:
    """Window and generation of the model that serves; its files are there."""
    path = project.home / "published" / pipeline.name / "main.json"
    pointer = json.loads(path.read_text())
    assert any(Path(pointer["path"]).iterdir()), f"{pointer['path']} is empty"
    return pointer["window"], pointer["generation"]


def models(project: Project, pipeline: Pipeline) -> dict[tuple[str, int], str]:
    """State of each model as `forebay models ls` tells it."""
    rows = json.loads(project.forebay("models", "ls", pipeline.name, "--output", "json").stdout)
    return {(row["window"], row["generation"]): row["state"] for row in rows}


def plan(project: Project, pipeline: Pipeline, number: int, generation: int = 1) -> Json:
    """A recorded plan, from the row in the database."""
    with sqlite3.connect(f"file:{project.home / 'forebay.db'}?mode=ro", uri=True) as database:
        (document,) = database.execute(
            "SELECT document FROM plans JOIN windows ON windows.id = plans.window_id "
            "WHERE pipeline = ? AND key = ? AND generation = ?",
            (pipeline.name, pipeline.key(number), generation),
        ).fetchone()
    found: Json = json.loads(document)
    return found


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text)
