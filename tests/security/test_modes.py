"""What is kept is its user's alone: by its modes, and before the eyes of another user."""

from __future__ import annotations

import json
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from support.other_user import reached_by_another_user
from support.parquet_files import null_labels
from support.projects import DAY, FIRST_DAY, Project, ads_project, history_source, rows_of_day

from forebay.home.paths import Home
from forebay.home.privacy import exposed

WINDOW = f"{FIRST_DAY:%Y-%m-%d}"
RANGE = ("--from", WINDOW, "--to", WINDOW)


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A folder that every user of the machine can enter and list."""
    with tempfile.TemporaryDirectory(prefix="forebay-modes-") as name:
        place = Path(name)
        place.chmod(0o755)
        yield place


@pytest.fixture
def project(open_place: Path) -> Project:
    """One window, with a row that becomes a dead letter."""
    made = ads_project(open_place / "project", rows=300)
    made.home_folder = open_place / "home"
    more = made.files / f"date={FIRST_DAY - DAY:%Y-%m-%d}" / "part-9.parquet"
    pq.write_table(rows_of_day(FIRST_DAY - DAY, 10, 99), more)
    null_labels(more, every=10)
    made.write_source("history", history_source(label_null="dead_letter"))
    return made


def run(project: Project, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of whoever has a umask that closes nothing."""
    done = subprocess.run(
        project.command(*words),
        cwd=project.root,
        env=project.env(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        umask=0,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.guarantee(
    "another user of the machine, whatever the umask",
    "can neither read nor list anything in `FOREBAY_HOME`",
)
def test_another_user_sees_nothing_of_a_home_whatever_the_umask(
    project: Project, open_place: Path
) -> None:
    run(project, "run", "ads", *RANGE)
    home = project.home
    assert mode(home) == 0o700
    kept = list(home.rglob("*"))
    assert len(kept) > 40
    (request,) = home.glob("jobs/*/job.json")
    (letters,) = home.glob("store/**/letters.jsonl")
    assert [mode(path) for path in (request, request.parent, letters)] == [0o600, 0o700, 0o600]
    assert mode(home / "store") == 0o700
    assert reached_by_another_user(open_place, [home, *kept]) == []
    assert exposed(Home(home)) == []


@pytest.mark.guarantee("a home that was open to others", "it is closed, and a note says so")
def test_a_home_that_was_open_is_closed_and_a_note_says_so(project: Project) -> None:
    project.home.mkdir()
    project.home.chmod(0o755)
    done = run(project, "run", "ads", *RANGE)
    note = f"note: {project.home} was open to other users (mode 0755): its mode is 0700 now"
    assert done.stderr.count(note) == 1
    assert mode(project.home) == 0o700
    assert note not in run(project, "plan", "ads", *RANGE).stderr


def test_a_group_that_a_home_was_shared_with_stays_let_in(project: Project) -> None:
    project.home.mkdir()
    project.home.chmod(0o2750)
    assert "was open" not in run(project, "plan", "ads", *RANGE).stderr
    assert mode(project.home) == 0o2750
    assert mode(project.home / "store") & 0o777 == 0o700, "until its owner opens it too"


def test_a_home_that_is_a_link_is_closed_where_it_leads(project: Project) -> None:
    elsewhere = project.home.with_name("elsewhere")
    elsewhere.mkdir()
    elsewhere.chmod(0o777)
    project.home.symlink_to(elsewhere)
    assert f"{project.home} was open" in run(project, "plan", "ads", *RANGE).stderr
    assert mode(elsewhere) == 0o700


@pytest.mark.guarantee(
    "open permissions in an older home, or beside it",
    "`forebay doctor` names them, with what to do",
)
def test_doctor_names_what_is_open_and_what_to_do(project: Project) -> None:
    home = project.home
    request = home / "jobs" / "ads.main.2026-03-01.g1" / "job.json"
    request.parent.mkdir(parents=True)
    request.write_text("{}")
    request.chmod(0o644)
    for folder in (home / "kafka", home / "store", home):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    rows = json.loads(project.forebay("doctor", "--output", "json", check=False).stdout)
    said = {row["found"]: row["remedy"] for row in rows if row["check"] == "privacy"}
    assert said == {
        f"{home}: every user can enter it (mode 0755)": (
            f"chmod 700 {home} (`forebay up` and `forebay run` do it)"
        ),
        f"{home / 'kafka'}: every user can list it (mode 0755)": (
            f"chmod o= {home / 'kafka'}, or let a group in instead (chgrp, chmod 750)"
        ),
        f"{home / 'store'}: every user can list it (mode 0755)": (
            f"chmod o= {home / 'store'}, or let a group in instead (chgrp, chmod 750)"
        ),
        f"{request}: not private to its user (mode 0644)": f"chmod 600 {request}",
    }
