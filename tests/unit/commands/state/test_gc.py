"""`forebay gc` in a folder that is not a home."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.cli import run


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_folder_that_is_no_home_is_left_as_it_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    more: tuple[str, ...],
) -> None:
    for name in ("sources", "pipelines"):
        (tmp_path / "config" / name).mkdir(parents=True)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("FOREBAY_HOME", str(home))
    assert run(["gc", "--config", str(tmp_path / "config"), *more]) == 1
    assert f"{home} is not a home yet: nothing to remove" in capsys.readouterr().err
    assert not list(home.iterdir())
