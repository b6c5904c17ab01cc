"""`forebay jobs`: the list, one job, and the logs of one that still runs."""

from __future__ import annotations

import json
import os
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.jobs import ToldJob, failed, of_another_host, request, store_job
from support.links import link
from support.model_lines import record
from support.python_code import printed

from forebay import cli
from forebay.commands.state import jobs as command
from forebay.executors.model_line.chain import ModelChain
from forebay.home.database.format import record_format
from forebay.home.paths import Home

JOB = "ads.main.2026-03-01.g1"
TRIAL = "ads.trial.2026-03-01..2026-03-03"
OTHER = "flights.main.2026-03-01.g1"
START = datetime(2026, 3, 9, 7, 30, 59, tzinfo=UTC)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("FOREBAY_HOME", str(tmp_path))
    made = Home(tmp_path)
    record_format(made)
    return made


def run(*arguments: str) -> int:
    return cli.run(["jobs", *arguments])


def store_three(home: Home) -> None:
    windows = {f"2026-03-0{day}": 1 for day in (1, 2, 3)}
    one = {"2026-03-01": 1}
    jobs = ((OTHER, one, "flights", "main"), (TRIAL, windows, "ads", "trial"))
    for minute, job in enumerate((*jobs, (JOB, one, "ads", "main"))):
        begun = START + timedelta(minutes=minute)
        times = {"submitted_at": begun, "started_at": begun}
        times["ended_at"] = begun + timedelta(seconds=3723)
        store_job(request(home, *job), "succeeded", **times)


def test_the_newest_jobs_come_first(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    store_three(home)
    assert run("ls") == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    ends = zip((JOB, TRIAL, OTHER), (32, 31, 30), strict=True)
    rows = [[job, "succeeded", f"2026-03-09T07:{at}Z", "1:02:03"] for job, at in ends]
    assert lines == [["job", "state", "submitted", "took"], *rows]


def test_jobs_of_a_pipeline_and_a_line(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    store_three(home)
    found = {}
    for arguments in (("ads",), ("ads", "--line", "trial"), ("ads", "--jobs-max", "1")):
        assert run("ls", *arguments, "--output", "json") == 0
        shown = capsys.readouterr()
        found[arguments] = [each["job"] for each in json.loads(shown.out)]
    assert list(found.values()) == [[JOB, TRIAL], [TRIAL], [JOB]]
    assert (shown.err, run("ls", "--line", "trial")) == ("… and 1 older (--jobs-max)\n", 1)
    assert "name the pipeline too" in capsys.readouterr().err


def test_no_job_is_said_to_be_none(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    record(ModelChain(home, "ads", "trial"), link("2026-03-01"))
    assert [run("ls"), run("ls", "ads", "--line", "trial")] == [0, 0]
    lines = ["no jobs", "no jobs of pipeline 'ads' on line 'trial'"]
    assert (capsys.readouterr().out.splitlines(), run("ls", "--output", "json")) == (lines, 0)
    assert json.loads(capsys.readouterr().out) == []


@pytest.mark.parametrize("name", [JOB, "ads"])
def test_one_job_by_its_id_or_by_its_pipeline(
    home: Home, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    job = ToldJob(home)
    job.tell("running", ended_at=None)
    job.progress(step=1200, rows={"a": 1234}, windows_total=1)
    with job.supervised():
        assert run("show", name) == 0
    lines = capsys.readouterr().out.splitlines()
    told = dict(line.split(maxsplit=1) for line in lines[:-1])
    assert (told["job"], told["state"]) == (JOB, "running")
    assert (told["pipeline"], told["windows"]) == ("ads, line main", "2026-03-01")
    assert told["progress"] == "0 of 1 windows, step 1,200, rows a 1,234"
    assert lines[-1] == "to end it  forebay cancel ads"


def test_a_job_that_failed_says_why(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    job = ToldJob(home)
    job.tell("failed", failed("DataError", "label is null", 3), restarts={"data": 2})
    assert run("show", JOB) == 0
    out = capsys.readouterr().out
    assert "error      DataError: label is null\n" in out
    assert "restarts   data 2\n" in out
    assert "to end it" not in out
    assert run("show", JOB, "--output", "json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["windows"] == [{"key": "2026-03-01", "generation": 1}]
    assert facts["status"]["error"]["message"] == "label is null"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ads.main.2026-03-02.g1", "no job 'ads.main.2026-03-02.g1' below"),
        ("../../etc", "job '../../etc': no job has such an id"),
        ("other", "pipeline 'other' has no job in {root} (see"),
        ("fligths", "has no job in {root} (did you mean flights?)"),
    ],
)
@pytest.mark.parametrize("action", ["show", "logs"])
def test_a_job_that_is_not_there(
    home: Home, text: str, said: str, action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store_three(home)
    assert run(action, text) == 1
    assert said.format(root=home.root) in capsys.readouterr().err


def write(job: ToldJob, process: str, text: str) -> None:
    with (job.folder.path / "logs" / f"{process}.log").open("a") as log:
        log.write(text)


def test_the_last_lines_of_each_process(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    job = ToldJob(home)
    write(job, "trainer-0", "one\ntwo\n\x1b[2Jthree\n")
    write(job, "driver-0", "only\n")
    assert run("logs", JOB, "--lines", "2") == 0
    lines = ["driver-0     only", "trainer-0    two", "trainer-0    \\x1b[2Jthree"]
    assert capsys.readouterr().out.splitlines() == lines
    assert run("logs", "ads", "--process", "driver-0") == 0
    assert capsys.readouterr().out.splitlines() == ["driver-0     only"]
    job.tell("succeeded")
    assert run("logs", JOB, "--process", "data-7") == 1
    assert "no process 'data-7'. It has: driver-0, trainer-0" in capsys.readouterr().err


def test_logs_that_are_gone_or_elsewhere(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    job = ToldJob(home)
    job.tell("succeeded")
    assert run("logs", JOB) == 1
    assert "no longer has logs" in capsys.readouterr().err
    of_another_host(job)
    assert run("logs", JOB) == 1
    assert "belongs to another host" in capsys.readouterr().err


def test_following_ends_with_the_job(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "STATE_SECONDS", 0.02)
    monkeypatch.setattr(command, "POLL_SECONDS", 0.01)
    job = ToldJob(home)
    job.tell("running", ended_at=None)
    write(job, "driver-0", "before\n")
    with job.supervised():
        follower = threading.Thread(target=run, args=("logs", JOB, "-f"))
        follower.start()
        time.sleep(0.1)
        write(job, "trainer-0", "of a process that came later\nand a last wo")
        write(job, "driver-0", "after\n")
        time.sleep(0.1)
        assert follower.is_alive()
        write(job, "trainer-0", "rd")
        job.tell("failed", failed("DataError", "label is null", 3))
        follower.join(10)
    assert not follower.is_alive()
    shown = capsys.readouterr()
    assert set(shown.out.splitlines()) == {
        *("driver-0     before", "driver-0     after"),
        *("trainer-0    of a process that came later", "trainer-0    and a last word"),
    }
    assert shown.err == f"job {JOB} has failed: `forebay jobs show {JOB}` says why\n"


def test_ctrl_c_ends_following_quietly(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_seconds: float) -> None:
        raise KeyboardInterrupt

    job = ToldJob(home)
    job.tell("running", ended_at=None)
    monkeypatch.setattr(command, "time", SimpleNamespace(sleep=interrupt, monotonic=time.monotonic))
    with job.supervised():
        assert run("logs", JOB, "-f") == 130
    assert capsys.readouterr().err == ""


def test_what_is_not_needed_is_not_imported(home: Home) -> None:
    ToldJob(home)
    code = (
        "import sys; from forebay import cli; "
        "assert cli.run(['jobs', 'ls']) == cli.run(['jobs', 'show', 'ads']) == 0; "
        "assert cli.run(['jobs', 'logs', 'ads']) == 0; "
        "print({'tensorflow', 'pyarrow', 'numpy', 'pandas'} & set(sys.modules))"
    )
    assert printed(code, os.environ).splitlines()[-1] == "set()"
