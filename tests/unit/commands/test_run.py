"""What `forebay run` tells while a job goes on."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from forebay.commands.run import _Shown


def test_an_interrupted_run_says_that_its_job_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    shown = _Shown(io.StringIO(), "forebay cancel ads --line trial")
    shown.interrupted()
    assert not capsys.readouterr().err, "there is no job yet"
    shown.submitted("ads-1", Path("jobs/ads-1"))
    shown.interrupted()
    assert capsys.readouterr().err.strip() == (
        "job ads-1 goes on: the same command follows it again, "
        "`forebay cancel ads --line trial` ends it"
    )
