"""`forebay cancel` ends a running job; the same run continues from the newest checkpoint."""

from __future__ import annotations

from pathlib import Path

from support.kills import no_process_left, running, summary_of, wait_for_rows
from support.projects import ads_pipeline, ads_project

WINDOW = "2026-03-01"


def test_a_cancelled_job_leaves_no_process_and_goes_on_later(tmp_path: Path) -> None:
    pipeline = ads_pipeline(checkpoint={"every_steps": 500})
    pipeline["train"]["minibatch_rows"] = 16  # slow enough to be cancelled on the way
    project = ads_project(tmp_path, rows=50_000, pipeline=pipeline)
    summary = tmp_path / "s.json"
    arguments = ("run", "ads", "--from", WINDOW, "--to", WINDOW, "--summary", str(summary))
    with running(project, *arguments) as run:
        wait_for_rows(project, WINDOW, 20_000, run)
        done = project.forebay("cancel", "ads")
        assert "is cancelled" in done.stderr
        output, _ = run.communicate(timeout=60)
    assert run.returncode == 4
    assert "cancelled" in output
    assert no_process_left(project)
    project.forebay(*arguments)
    facts = summary_of(summary)
    assert facts["windows"][0]["resumed_from_step"] > 0
    assert facts["rows_agree"]


def test_there_is_nothing_to_cancel(tmp_path: Path) -> None:
    done = ads_project(tmp_path, rows=10).forebay("cancel", "ads")
    assert "no job of pipeline 'ads' is running" in done.stderr
