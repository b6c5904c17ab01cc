"""What the towers learn: something from real labels, nothing from permuted ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support import projects
from support.projects import Project, ads_pipeline, ads_project
from support.truth_rows import served_of

from forebay.config.checks import rivals

PARADIGMS = {"mixture", "stream", "mixed"}
DAYS = 3
ROWS = 6_000


def trained(root: Path) -> tuple[Project, dict[str, Any]]:
    pipeline = ads_pipeline("towers")
    pipeline["train"] |= {"compare": ["stream", "mixed"], "minibatch_rows": 256}
    pipeline["dataset"] |= {"queue_unit": 256, "slices": ["mobile"]}
    pipeline["job"]["publish"] = {"when": "gate", "min_rows": ROWS}
    project = ads_project(root, days=DAYS, rows=ROWS, pipeline=pipeline)
    temporary = root / "temporary"
    temporary.mkdir()
    project.environment["TMPDIR"] = str(temporary)
    return project, project.run("2026-03-01", "2026-03-03", timeout_seconds=180)


def permuted(make: Callable[..., pa.Table]) -> Callable[..., pa.Table]:
    def rows_of_day(*arguments: Any, **named: Any) -> pa.Table:
        table = make(*arguments, **named)
        order = np.random.default_rng(7).permutation(table.num_rows)
        place = table.schema.get_field_index("clicked")
        return table.set_column(place, "clicked", table.column("clicked").take(pa.array(order)))

    return rows_of_day


def test_towers_learn_beside_each_other_on_the_same_rows(tmp_path: Path) -> None:
    project, summary = trained(tmp_path)
    assert summary["rows_agree"]
    pooled = summary["pooled"]["paradigms"]
    assert set(pooled) == {*PARADIGMS, "mixture/memory"}
    for figures in pooled.values():
        assert figures["auc_fresh"]["low"] > 0.55
    for window in summary["windows"]:
        for metrics in window["metrics"].values():
            assert metrics["rows"] == ROWS
            assert metrics["joined_rows"] == (ROWS if window["window"] != "2026-03-03" else 0)
    assert len(summary["pooled"]["differences"]) == 3
    assert (Path(summary["model"]) / "saved_model.pb").is_file()
    assert str(served_of(project.home, "ads")[2]) == summary["model"]
    # The first day has no model before it, and the batch rows of the last one still come.
    first, second, third = (window["event"] for window in summary["windows"])
    assert (first["judged"], first["unjudged"]["before"], first["complete"]) == (0, ROWS, True)
    assert (second["judged"], second["rows"], second["complete"]) == (ROWS, ROWS, True)
    assert set(second["answers"]) == {*PARADIGMS, "mixture/memory"}
    assert set(second["slices"]["mobile"]) == {"bucket 1", "bucket 2"}
    assert (third["judged"], third["rows"], third["complete"]) == (0, ROWS, False)
    event = summary["pooled"]["event"]
    assert (event["windows"], event["judged"]) == (1, ROWS)
    for figures in event["answers"].values():
        assert figures["auc"]["low"] > 0.55
        assert 0.5 < figures["calibration"] < 2
    assert summary["pooled"]["scored_at"] == "event"
    gate = summary["gate"]
    served = json.loads((Path(summary["model"]) / "features.json").read_text())
    assert served["paradigm"] == gate["variant"]
    assert (gate["windows"], gate["rows"]) == ([], ROWS), "one seed takes three windows"
    # TensorFlow writes the code that it generates among temporary files, and leaves it there.
    assert list((project.root / "temporary").iterdir()) == []
    assert list(project.home.glob("jobs/*/temporary")) == []
    why = project.forebay("why", "ads", "2026-03-03").stdout
    assert f"mixture none so far, 0 of {ROWS:,} rows judged" in why


@pytest.mark.chaos
def test_nothing_is_learnt_from_labels_permuted_within_the_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects, "rows_of_day", permuted(projects.rows_of_day))
    _, summary = trained(tmp_path)
    for figures in summary["pooled"]["paradigms"].values():
        assert figures["auc_fresh"]["low"] <= 0.5 <= figures["auc_fresh"]["high"]
        assert figures["auc_true"]["low"] <= 0.5 <= figures["auc_true"]["high"]


@pytest.mark.usefixtures("jobs_here")
def test_a_line_keeps_the_rivals_of_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = ads_pipeline("towers", publish={"when": "gate"})
    pipeline["train"]["compare"] = "auto"
    project = ads_project(tmp_path, days=2, rows=1_000, pipeline=pipeline)
    begun = project.run("2026-03-01", "2026-03-01", timeout_seconds=180)
    assert begun["paradigms"] == ["mixture", "stream+fnw", "batch", "mixed"]
    monkeypatch.setattr(rivals, "PREFERRED", rivals.PREFERRED[::-1])  # a newer release
    second = project.run("2026-03-02", "2026-03-02", timeout_seconds=180)
    assert (second["paradigms"], second["rows_agree"]) == (begun["paradigms"], True)
    assert set(second["windows"][0]["metrics"]) == {*begun["paradigms"], "mixture/memory"}
    assert "the gate needs 2,000 judged rows" in second["gate"]["words"]
