"""What `forebay models` says about what serves, and how it is changed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.serving_line import publish, serving_line

from forebay.cli import run
from forebay.executors.serving.switch import Serving
from forebay.executors.stages.target import LineTarget
from forebay.home.database.open import close_databases

FIRST, SECOND = "2026-03-01", "2026-03-02"


@pytest.fixture
def serving(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serving]:
    made = serving_line(tmp_path, "exports", 2)
    target = LineTarget(made.project, made.pipeline, made.chain.home, "main")
    monkeypatch.setenv("FOREBAY_HOME", str(made.chain.home.root))
    monkeypatch.setattr(LineTarget, "load", lambda *_asked: target)
    yield made
    close_databases()


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert run(["models", "show", "ads", "--output", "json"]) == 0
    return dict(json.loads(capsys.readouterr().out))


def test_there_and_back(
    serving: Serving, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(capsys) == {"serves": None, "history": []}
    for window in (FIRST, SECOND):
        publish(serving, window)
    assert run(["models", "rollback", "ads", "--why", "the second is bad"]) == 0
    told = capsys.readouterr().out
    assert f"generation 1 of window {FIRST} serves since" in told
    assert f"window {FIRST} is pinned and serves until `forebay models unpin ads`" in told
    found = shown(capsys)
    current = json.loads((tmp_path / "exports" / "current.json").read_text())
    assert found["serves"]["pinned"]
    assert found["serves"]["path"] == str(tmp_path / "exports" / str(current["integer"]))
    for name in ("window", "generation", "integer", "hash", "published_at"):
        assert found["serves"][name] == current[name]
    newest = found["history"][0]
    assert (newest["action"], newest["why"]) == ("rollback", "the second is bad")
    assert "@" in newest["who"]
    assert run(["models", "rollback", "ads"]) == 1
    assert "nothing served before on line 'main'" in capsys.readouterr().err
    assert (run(["models", "unpin", "ads"]), run(["models", "unpin", "ads"])) == (0, 0)
    assert "nothing is pinned" in capsys.readouterr().err
    assert run(["models", "serve", "ads", SECOND]) == 0
    assert run(["models", "ls", "ads"]) == 0
    assert "current, serves (pinned)" in capsys.readouterr().out
    assert run(["models", "show", "ads", "--history", "1"]) == 0
    told = capsys.readouterr().out
    assert f"path  {tmp_path / 'exports'}" in told
    assert ("serve" in told, "the second is bad" in told) == (True, False)


def test_a_path_that_is_behind_is_said(
    serving: Serving, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(serving, FIRST)
    second = serving.chain.links()[-1]
    serving.chain.serve(second.model, "serve", second.finished_at)
    assert shown(capsys)["serves"]["path"] is None
    assert run(["models", "show", "ads"]) == 0
    assert "exports is behind: `forebay gc` brings it up" in capsys.readouterr().out


def test_a_window_that_cannot_be_served(
    serving: Serving, capsys: pytest.CaptureFixture[str]
) -> None:
    for window in ("2026-03-09", "../etc"):
        assert run(["models", "serve", "ads", window]) in {1, 2}
        assert serving.chain.published() is None
        assert window in capsys.readouterr().err
