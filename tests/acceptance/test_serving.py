"""From YAML to the path that a model server reads, and back to a window that was not exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.jobs_here import jobs_in_this_process
from support.projects import Project, ads_pipeline, ads_project

FIRST, SECOND, THIRD = "2026-03-01", "2026-03-02", "2026-03-03"
ROW = json.dumps({"user": "u1", "price": 3.0, "mobile": True, "tags": ["t1"]})
PINNED = f"window {FIRST} is pinned and serves until `forebay models unpin ads`"


def current(project: Project) -> dict[str, Any]:
    return dict(json.loads((project.root / "exports" / "current.json").read_text()))


def score(project: Project) -> float:
    model = str(project.root / "exports" / str(current(project)["integer"]))
    told = project.forebay("score", model, "--row", ROW, "--output", "json").stdout
    return float(json.loads(told)[0]["score"])


@pytest.mark.timeout(900)
def test_any_window_whose_checkpoint_is_kept_can_serve(tmp_path: Path) -> None:
    declared = ads_pipeline("towers", publish={"serving": "exports"})
    project = ads_project(tmp_path, days=3, rows=2_000, pipeline=declared)
    with jobs_in_this_process():
        project.run(FIRST, SECOND)  # one job: only its last window is exported
        types = {name: each["type"] for name, each in current(project)["features"].items()}
        assert (current(project)["window"], types["tags"]) == (SECOND, "list<string>")
        second = current(project)["integer"], score(project)

        project.forebay("models", "serve", "ads", FIRST, "--why", "the second is bad")
        first = current(project)
        assert (first["window"], first["integer"] > second[0]) == (FIRST, True)
        assert score(project) != second[1]
        assert not list((project.home / "training").glob("ads/main/2*")), "nothing is left over"

        summary = project.run(THIRD, THIRD)
        assert summary["notes"] == [f"not published: {PINNED}"]
        assert current(project) == first
        assert PINNED in project.forebay("why", "ads", THIRD).stdout
        shown = json.loads(project.forebay("models", "show", "ads", "--output", "json").stdout)
        assert (shown["serves"]["hash"], shown["serves"]["pinned"]) == (first["hash"], True)

        project.forebay("models", "rollback", "ads")
        assert (current(project)["window"], score(project)) == (SECOND, second[1])
        project.forebay("models", "unpin", "ads")
        project.run(THIRD, THIRD)
        assert current(project)["window"] == THIRD

        declared["dataset"]["features"]["user"]["buckets"] = 2_000
        project.write_pipeline()
        project.forebay("models", "serve", "ads", FIRST)  # its model is kept: nothing is exported
        assert current(project)["window"] == FIRST

        owner = project.root / "exports" / "owner.json"
        owner.write_text(owner.read_text().replace('"ads"', '"other"'))
        refused = project.forebay("models", "rollback", "ads", check=False)
        assert (refused.returncode, current(project)["window"]) == (1, FIRST)
        assert "config/pipelines/ads.yaml:" in refused.stderr
        assert "is where line 'main' of pipeline 'other'" in refused.stderr
