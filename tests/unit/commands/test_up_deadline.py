"""How the deadline of `forebay up` may be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay import cli


@pytest.mark.parametrize(
    ("written", "words"),
    [
        *(("5", "a duration is a number and a unit"), ("29s", "must be between 30s and 1d")),
        *(("2d", "must be between 30s and 1d"), ("0s", "must be between 30s and 1d")),
    ],
)
def test_a_deadline_that_cannot_be_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    written: str,
    words: str,
) -> None:
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path / "home"))
    assert cli.run(["up", "--config", str(tmp_path), "--component-deadline", written]) == 1
    error = capsys.readouterr().err
    assert "--component-deadline" in error
    assert words in error
    assert not (tmp_path / "home" / "airflow").exists()
