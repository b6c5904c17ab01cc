"""`forebay gc` in a folder that is not a home."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.cli import run


def test_a_folder_that_is_no_home_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("config/sources", "config/pipelines", "home"):
        (tmp_path / name).mkdir(parents=True)
    home = tmp_path / "home"
    monkeypatch.setenv("FOREBAY_HOME", str(home))
    for more in ([], ["--dry-run"]):
        assert run(["gc", "--config", str(tmp_path / "config"), *more]) == 1
        assert f"{home} is not a home yet: nothing to remove" in capsys.readouterr().err
        assert not list(home.iterdir())
