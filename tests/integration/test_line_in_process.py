"""A job in one process, as `support.line_sequences` runs it, leaves what jobs of roles leave."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from support.jobs_here import jobs_in_this_process
from support.projects import Project, ads_pipeline, ads_project

from forebay.executors.model_line.chain import ModelChain
from forebay.home.paths import Home

TESTS = Path(__file__).parents[1]
LINES = ("main", "b")
_DIFFERENT = {"files", "started_at", "finished_at", "step", "steps", "resumed_from_step"}


class _Here(Project):
    """Its commands do in their own process what others start processes for."""

    def command(self, *arguments: str) -> list[str]:
        program, _, _, *given = super().command(*arguments)
        return [program, "-m", "support.line_sequences.in_process", *given]


def _story(project: Project) -> list[tuple[int, str]]:
    """How each command of a line's life ended: trained, refused by its command or its trainer."""
    told = []

    def run(*arguments: str) -> None:
        done = project.forebay("run", "ads", *arguments, check=False)
        refusal = done.stderr.strip() if done.returncode else ""
        told.append((done.returncode, refusal.replace(str(project.home), "HOME")))

    def window(day: int) -> str:
        return f"2026-03-0{day}"

    run("--from", window(1), "--to", window(2))
    run("--from", window(4), "--to", window(4))
    moved = ads_pipeline()
    moved["dataset"]["streams"]["history"]["offset"] = "30h"
    project.pipeline = moved
    project.write_pipeline()
    run("--from", window(3), "--to", window(3))
    project.pipeline = ads_pipeline()
    project.write_pipeline()
    run("--from", window(2), "--to", window(3), "--reprocess")
    run("--from", window(2), "--to", window(3), "--line", "b")
    return told


def _links(project: Project) -> list[dict[str, Any]]:
    chains = [ModelChain(Home(project.home), "ads", line) for line in LINES]
    return [
        link.model_dump(mode="json", exclude=_DIFFERENT)
        for chain in chains
        for link in chain.links()
    ]


@pytest.mark.timeout(600)
def test_the_same_windows_are_trained_on_the_same_rows_and_refused_alike(tmp_path: Path) -> None:
    real = ads_project(tmp_path, days=3, rows=60)
    real.home_folder = tmp_path / "real"
    here = _Here(tmp_path, real.pipeline, {"PYTHONPATH": str(TESTS)}, tmp_path / "here")

    with jobs_in_this_process():
        expected = _story(real)
    found = _story(here)

    assert [code for code, _ in expected] == [0, 1, 1, 0, 0]
    assert found == expected
    assert len(_links(real)) == 6
    assert _links(here) == _links(real)
    assert all(re.search(r"window", refusal) for code, refusal in expected if code)
