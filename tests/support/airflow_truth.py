"""What windows have to leave behind, checked with counts that share no code with Forebay."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from support import independent
from support.airflow_pipelines import Pipeline
from support.projects import Project
from support.truth_rows import links_of, plan_of, served_of

Json = dict[str, Any]


def generations(project: Project, pipeline: Pipeline, number: int) -> list[int]:
    found = links_of(project.home, pipeline.name, pipeline.key(number))
    return [each["generation"] for each in found]


def link(project: Project, pipeline: Pipeline, number: int) -> Json:
    found = links_of(project.home, pipeline.name, pipeline.key(number))
    assert found, f"window {pipeline.key(number)} of {pipeline.name} has no model"
    return found[-1]


def trained(of: Json) -> dict[str, Json]:
    none = {"rows": 0, "sum": 0, "sum_of_squares": 0}
    return {
        name: independent.added(
            after, {key: -value for key, value in of["base_seen"].get(name, none).items()}
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
            assert found["started_at"] >= before["finished_at"]
        before = found


def served(project: Project, pipeline: Pipeline) -> tuple[str, int]:
    window, generation, path = served_of(project.home, pipeline.name)
    assert any(path.iterdir()), f"{path} is empty"
    return window, generation


def models(project: Project, pipeline: Pipeline) -> dict[tuple[str, int], str]:
    rows = json.loads(project.forebay("models", "ls", pipeline.name, "--output", "json").stdout)
    return {(row["window"], row["generation"]): row["state"] for row in rows}


def plan(project: Project, pipeline: Pipeline, number: int, generation: int = 1) -> Json:
    found: Json = json.loads(plan_of(project.home, pipeline.name, pipeline.key(number), generation))
    return found
