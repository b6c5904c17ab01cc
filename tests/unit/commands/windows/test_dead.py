"""`forebay dead`: what it prints for stored letters and for those still being written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.letters import local_letters, stored_letters
from support.links import link
from support.model_lines import record

from forebay.commands.shared.output import OutputFormat
from forebay.commands.windows.dead import ls, show
from forebay.executors.model_line.chain import ModelChain
from forebay.home.database.format import record_format
from forebay.home.paths import Home

FIRST, SECOND = "2026-03-01", "2026-03-02"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A trained window of the line main with two letters, and one in training of another line."""
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path))
    made = Home(tmp_path)
    record_format(made)
    chain = ModelChain(made, "ads")
    stored = stored_letters(chain, FIRST, 1, 4, 5)
    record(chain, link(FIRST, files={"dead_letters": stored}))
    local_letters(ModelChain(made, "ads", "trial"), SECOND, 3, 7)
    return made


def test_letters_are_counted_by_line_and_window(capsys: pytest.CaptureFixture[str]) -> None:
    ls("ads")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["model_line", "window", "generation", "source", "reason", "rows"],
        ["main", FIRST, "1", "clicks", "bad", "2"],
        ["trial", SECOND, "3", "clicks", "bad", "1"],
    ]
    ls("ads", window=SECOND, output=OutputFormat.JSON)
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["model_line"], found["window"], found["rows"]) == ("trial", SECOND, 1)


def test_nothing_is_said_to_be_nothing(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    record(ModelChain(home, "other"), link(FIRST))
    for command in (ls, show):
        command("other")
        assert capsys.readouterr().out == "pipeline 'other' has no dead letters\n"
        command("ads", window=FIRST, source="history")
        said = f"pipeline 'ads' has no dead letters of window {FIRST} from source history\n"
        assert capsys.readouterr().out == said
    ls("other", output=OutputFormat.JSON)
    assert json.loads(capsys.readouterr().out) == []


def test_letters_are_shown_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    show("ads", rows_max=2)
    place = f"model_line=main  window={FIRST}  generation=1  source=clicks  file=a.parquet"
    assert capsys.readouterr().out.splitlines() == [
        *(f"{place}  row=4  reason=bad  rows=1", "    {}"),
        *(f"{place}  row=5  reason=bad  rows=1", "    {}"),
        "… and 1 more (--rows-max)",
    ]
    show("ads", rows_max=100, output=OutputFormat.JSON)
    found = json.loads(capsys.readouterr().out)
    shown = [(each["model_line"], each["row"]) for each in found]
    assert shown == [("main", 4), ("main", 5), ("trial", 7)]
