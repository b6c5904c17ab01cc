"""What a person sees in a terminal of 80 columns; each capture stays in `.forebay-captures/`."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from support.projects import Project, ads_pipeline, ads_project
from support.terminals import Capture, forebay, in_terminal

CAPTURES = Path(".forebay-captures").absolute()
RANGE = ("--from", "2026-03-01", "--to", "2026-03-02")
SILENCE_SECONDS = 2.0


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Names that are as long as the demo's, and two days of rows."""
    return ads_project(tmp_path_factory.mktemp("ads"), days=2, rows=2_000)


def see(project: Project, *arguments: str, name: str = "", **more: object) -> Capture:
    # As people have it: in the folder where they are.
    seen = in_terminal(
        forebay(*arguments),
        project.root,
        {"FOREBAY_HOME": ".forebay"},
        **more,  # type: ignore[arg-type]
    )
    CAPTURES.mkdir(exist_ok=True)
    name = name or "-".join(part.strip("-/") for part in arguments)
    (CAPTURES / f"{name}.txt").write_text("\n".join(seen.lines))
    return seen


def words(seen: Capture) -> str:
    return " ".join(seen.text.split())


def assert_fits(seen: Capture) -> None:
    """Nothing is too wide but a path, which stands alone in its line to be copied."""
    assert [line for line in seen.too_wide if " " in line.split(maxsplit=1)[-1]] == []
    assert [line for line in seen.lines if "…" in line and "more" not in line] == []


def assert_speaks(seen: Capture) -> None:
    """No silence over 2 s from its start to its end, whatever else the machine does meanwhile."""
    assert max(seen.own_silences) < SILENCE_SECONDS, (seen.silences, seen.starved, seen.text)


@pytest.mark.timeout(600)
def test_a_run_and_what_is_asked_about_it(project: Project) -> None:
    before = see(project, "explain", "ads", *RANGE)
    assert "defaults, as line main has trained nothing yet" in words(before)
    run = see(project, "run", "ads", *RANGE)
    assert run.exit_code == 0, run.text
    doing = ("reading pipeline ads", "planning: asking each source", "starting the job", "2/2 win")
    places = [run.text.index(each) for each in doing]
    assert places == sorted(places)
    commands = (
        ("explain", "ads"),
        ("explain", "ads", *RANGE, "--reprocess"),
        ("why", "ads", "2026-03-02"),
        ("check",),
        ("check", "--connect"),
        ("models", "ls", "ads"),
        ("jobs", "ls"),
        ("jobs", "show", "ads"),
        ("preview", "history"),
        ("sources",),
        ("plan", "ads", *RANGE),
        ("report", "ads", *RANGE),
        ("home", "check"),
        ("gc", "--dry-run"),
    )
    seen = {arguments: see(project, *arguments) for arguments in commands}
    assert {each.exit_code for each in seen.values()} == {0}
    for each in (before, run, *seen.values()):
        assert_fits(each)
        assert_speaks(each)
    after = seen[("explain", "ads", *RANGE, "--reprocess")]
    assert "measured on line main: 2 windows" in words(after)
    assert "nothing to remove" in seen[("gc", "--dry-run")].lines


def test_errors_are_not_too_wide(tmp_path: Path) -> None:
    pipeline = ads_pipeline()
    pipeline["dataset"]["features"]["a_feature_with_a_long_name"] = {"encode": "hash", "buckets": 9}
    broken = ads_project(tmp_path, rows=10, pipeline=pipeline)
    for arguments in (("check",), ("run", "ads", *RANGE), ("why", "other", "2026-03-02")):
        seen = see(broken, *arguments, name=f"broken-{arguments[0]}")
        assert seen.exit_code == 1
        assert_fits(seen)


@pytest.mark.timeout(600)
def test_ctrl_c_leaves_the_job_and_says_so(tmp_path: Path) -> None:
    pipeline = ads_pipeline(checkpoint={"every_steps": 500})
    pipeline["train"]["minibatch_rows"] = 16  # slow enough to be interrupted on the way
    slow = ads_project(tmp_path, rows=120_000, pipeline=pipeline)
    arguments = ("run", "ads", "--from", "2026-03-01", "--to", "2026-03-01")
    seen = see(slow, *arguments, name="run-interrupted", interrupt=lambda text: "rows/s" in text)
    assert seen.exit_code == 130
    job = "ads.main.2026-03-01..2026-03-01"
    said = seen.lines[-6:]
    assert f"interrupted: job {job} continues in the background" in said
    assert f"its logs:     forebay jobs logs -f {job}" in said
    assert "to end it:    forebay cancel ads" in said
    assert "aborted" not in seen.text
    assert_fits(seen)
    followed = see(slow, "jobs", "logs", "-f", job, interrupt=lambda text: "trainer-0" in text)
    assert followed.exit_code == 130
    assert "Traceback" not in followed.text
    assert slow.forebay("jobs", "show", job).stdout.splitlines()[3] == "state      running"
    slow.forebay("cancel", "ads")
    assert "was cancelled" in slow.forebay("jobs", "logs", "-f", job).stderr


def test_ctrl_c_before_there_is_a_job(project: Project) -> None:
    arguments = ("run", "ads", "--from", "2026-03-01", "--to", "2026-03-01", "--line", "other")
    name = "run-interrupted-early"
    seen = see(project, *arguments, name=name, interrupt=lambda text: "reading pipeline" in text)
    # A shell calls both 130: Python ends by the signal when it came while a class was being made.
    assert seen.exit_code in {130, -signal.SIGINT}
    assert seen.lines[-2] == "interrupted: no job was started; the same command starts again"
