"""Submitting into a home of another version."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.jobs import request

from forebay.errors import ConfigError
from forebay.executors.job.submit import submit
from forebay.home.database.identity import MARKER_NAME, Marker
from forebay.home.paths import Home


def test_no_job_is_made_in_a_home_of_another_version(tmp_path: Path) -> None:
    marker = Marker(id="x", format="4", database="sqlite")
    (tmp_path / MARKER_NAME).write_text(marker.model_dump_json())
    home = Home(tmp_path)
    with pytest.raises(ConfigError, match=r"has format 4 \(home\.json\)"):
        submit(home, request(home, "j", {}), ("false",))
    assert [path.name for path in tmp_path.iterdir()] == [MARKER_NAME]
