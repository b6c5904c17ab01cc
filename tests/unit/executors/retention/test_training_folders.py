"""Folders of windows in training: which of them will never be continued."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.jobs import ToldJob
from support.links import link
from support.model_lines import plan_empty, record
from support.stages import replanned

from forebay.datatasks.plans.ledger import Ledger
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.retention.home_garbage import remove_spent_folders, spent_folders
from forebay.home.paths import Home

KEY = "2026-03-01"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A window that is planned, and was begun to be trained."""
    made = Home(tmp_path / "home")
    plan_empty(Ledger(made, "ads"), KEY)
    folder(made).mkdir(parents=True)
    return made


def folder(home: Home, generation: int = 1, line: str = "main") -> Path:
    return home.model("ads", line, KEY, generation)


def spent(home: Home) -> list[Path]:
    return [each.path for each in spent_folders(home)]


def test_what_is_linked_has_served(home: Home) -> None:
    folder(home, line="other").mkdir(parents=True)
    (home.line("ads", "main") / "lease.lock").touch()
    (folder(home).parent / "gone").mkdir()
    record(ModelChain(home, "ads"), link(KEY))
    assert spent(home) == [folder(home)], "the other line has it to train; the rest is no window"


def test_what_was_planned_anew_is_never_continued(home: Home) -> None:
    assert replanned(Ledger(home, "ads"), KEY) == 2
    folder(home, 2).mkdir()
    assert spent(home) == [folder(home, 1)]


def test_what_a_job_without_an_end_names_stays(home: Home) -> None:
    job = ToldJob(home)
    job.tell("running")
    record(ModelChain(home, "ads"), link(KEY))
    assert spent(home) == []
    job.tell("succeeded")
    assert spent(home) == [folder(home)]


def test_the_last_generation_takes_its_window_with_it(home: Home) -> None:
    folder(home, 2).mkdir()
    assert replanned(Ledger(home, "ads"), KEY) == 2
    remove_spent_folders(home)
    assert (folder(home).exists(), folder(home, 2).is_dir()) == (False, True)
    record(ModelChain(home, "ads"), link(KEY, generation=2))
    remove_spent_folders(home)
    assert not folder(home).parent.exists()


def test_a_window_that_a_killed_trainer_left_empty_goes(home: Home) -> None:
    (home.line("ads", "main") / "lease.lock").touch()
    folder(home).rmdir()
    remove_spent_folders(home)
    assert [path.name for path in home.line("ads", "main").iterdir()] == ["lease.lock"]
