"""Submitting into a home of another version."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.projects import ads_pipeline, clicks_source, history_source

from forebay.config.specs.pipelines import PipelineSpec
from forebay.config.specs.sources import SourceSpec
from forebay.errors import ConfigError
from forebay.executors.job.request import JobRequest
from forebay.executors.job.submit import submit
from forebay.home.database.identity import MARKER_NAME, Marker
from forebay.home.paths import Home


def test_no_job_is_made_in_a_home_of_another_version(tmp_path: Path) -> None:
    marker = Marker(id="x", format="4", database="sqlite")
    (tmp_path / MARKER_NAME).write_text(marker.model_dump_json())
    pipeline = PipelineSpec.model_validate({"name": "ads", **ads_pipeline()})
    sources = {
        name: SourceSpec.model_validate({"name": name, **spec})
        for name, spec in (("history", history_source()), ("clicks", clicks_source()))
    }
    request = JobRequest.of("j", tmp_path, tmp_path, pipeline, sources, [])
    with pytest.raises(ConfigError, match=r"has format 4 \(home\.json\)"):
        submit(Home(tmp_path), request, ("false",))
    assert [path.name for path in tmp_path.iterdir()] == [MARKER_NAME]
