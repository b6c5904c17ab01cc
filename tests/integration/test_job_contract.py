"""The job contract with real processes, without Airflow."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest
from sqlalchemy import Connection
from support.jobs import folder_of
from support.planted import CERTIFICATES, CONNECTION, DECLARED, PLANTED, STORAGE_KEY, planted_in
from support.postgres_server import PostgresServer
from support.there import there
from support.toy_roles.jobs import SUPERVISOR, ToyJobs, eventually

from forebay.errors import (
    ConfigError,
    DataError,
    FencedError,
    InfrastructureError,
    LineBusyError,
    UsageError,
)
from forebay.executors.job import job_changes
from forebay.executors.job.folder import JobFolder
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.request import JobStatus, WindowRequest
from forebay.executors.job.submit import attach, submit
from forebay.executors.link.sockets import listen
from forebay.executors.supervisor.reporter import BEAT_SECONDS
from forebay.home.database.open import database_of
from forebay.home.paths import Home
from forebay.system.output.error_report import ErrorReport

CRASH_BEFORE_HANDLE = """
import os, sys
from contextlib import suppress
from pathlib import Path
from forebay.executors.job.submit import submit
from forebay.executors.job.request import JobRequest
from forebay.home.paths import Home
request = JobRequest.model_validate_json(Path(sys.argv[1]).read_text())
submit(Home(Path(request.home)), request, sys.argv[2:])
os.kill(os.getpid(), 9)
"""


def why(status: JobStatus) -> ErrorReport:
    assert status.state == "failed"
    return there(status.error)


def test_a_trainer_that_ends_well_ends_the_job(jobs: ToyJobs, tmp_path: Path) -> None:
    jobs.plan(trainer_0=[f"wait {tmp_path / 'done'}", "serve"])
    handle = jobs.submit()
    status = jobs.serving(handle, "driver-0", "data-0")
    eventually(
        lambda: set(handle.status().pids) == {"supervisor", "driver-0", "data-0", "trainer-0"}
    )
    assert status.state == "running"
    (folder_of(handle).path / "progress.json").write_text('{"step": 7}')
    (tmp_path / "done").touch()
    status = handle.wait(20)
    assert (status.state, status.error, status.pids) == ("succeeded", None, {})
    assert set(status.restarts.values()) == {0}
    assert set(status.phases) == {"start", "run", "stop"}
    assert jobs.processes() == []
    assert status.started_at is not None
    seconds = (there(status.ended_at) - status.submitted_at).total_seconds()
    # Each of the supervisor's transactions counts as one beat; the third is the submission.
    assert 2 <= handle.look().row.beats <= 2 + seconds / BEAT_SECONDS
    assert JobFolder(folder_of(handle).path).progress() is not None
    jobs.submit()
    assert JobFolder(folder_of(handle).path).progress() is None, "the next job has its own"


@pytest.mark.guarantee("`forebay run` itself dies", "nothing; the job continues")
def test_a_submitter_that_died_before_it_stored_the_handle(jobs: ToyJobs, tmp_path: Path) -> None:
    command = crashing_submitter(jobs, tmp_path)
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    first = attach(jobs.home, "j1")
    pid = jobs.serving(first).pids["supervisor"]
    handle = jobs.submit()
    assert handle.epoch > first.epoch
    assert handle.status().pids["supervisor"] == pid
    assert handle.status().restarts["supervisor"] == 0


def crashing_submitter(jobs: ToyJobs, folder: Path) -> list[str]:
    """The command of a process that submits a job, and kills itself before it has the handle."""
    path = folder / "request.json"
    path.write_text(jobs.request().model_dump_json())
    return [sys.executable, "-c", CRASH_BEFORE_HANDLE, str(path), *SUPERVISOR]


def test_a_supervisor_that_cannot_be_run_is_no_job_that_another_starts(jobs: ToyJobs) -> None:
    with pytest.raises(FileNotFoundError, match="no/such/python"):
        submit(jobs.home, jobs.request(), ("/no/such/python",))


def test_the_same_command_attaches_although_windows_are_trained_meanwhile(jobs: ToyJobs) -> None:
    day = datetime(2026, 3, 1, tzinfo=UTC)
    first, second = (
        WindowRequest(key=key, generation=1, start=day, end=day)
        for key in ("2026-03-01", "2026-03-02")
    )
    asked = jobs.request()
    both = asked.model_copy(update={"windows": [first, second]})
    pid = jobs.serving(submit(jobs.home, both, SUPERVISOR)).pids["supervisor"]
    left = submit(jobs.home, asked.model_copy(update={"windows": [second]}), SUPERVISOR)
    assert (left.epoch, left.status().pids["supervisor"]) == (2, pid)
    other = second.model_copy(update={"generation": 2})
    with pytest.raises(InfrastructureError, match="another request"):
        submit(jobs.home, asked.model_copy(update={"windows": [other]}), SUPERVISOR)


def test_a_submitter_killed_while_the_supervisor_starts(jobs: ToyJobs, tmp_path: Path) -> None:
    with subprocess.Popen(crashing_submitter(jobs, tmp_path)) as submitter:
        # As soon as the child is there, long before it has its lock.
        eventually(lambda: bool(psutil.Process(submitter.pid).children()))
        submitter.kill()
    handle = jobs.submit()
    jobs.serving(handle)
    eventually(lambda: len(jobs.processes()) == 4)
    assert handle.status().restarts["supervisor"] == 0


@pytest.mark.guarantee("an older owner wakes up", "nothing; its cancel is refused")
def test_a_late_cancel_by_an_older_epoch_is_refused(jobs: ToyJobs) -> None:
    older = jobs.submit()
    newer = attach(jobs.home, "j1")
    with pytest.raises(FencedError, match=r"newer owner \(epoch 2\)"):
        older.cancel()
    assert jobs.serving(newer).state == "running"
    newer.cancel()
    status = older.wait(20)
    assert (status.state, status.cancelled_by) == ("cancelled", 2)
    assert jobs.processes() == []


def test_the_supervisor_refuses_an_older_epoch_itself(jobs: ToyJobs) -> None:
    handle = jobs.submit()

    def cancel_and_lose(rows: Connection) -> None:
        job_changes.request_cancel(rows, "j1", handle.epoch)
        job_changes.attach(rows, "j1", None)

    database_of(jobs.home).transact(cancel_and_lose)
    eventually(lambda: handle.look().row.cancel_epoch is None)
    status = jobs.serving(handle)
    assert (status.state, status.cancelled_by) == ("running", None)
    log = folder_of(handle).supervisor_log
    # It is written after the answer was taken: the answer shows first.
    eventually(lambda: "cancel by epoch 1: refused" in log.read_text())


def test_a_killed_supervisor_takes_all_along_and_the_next_goes_on(jobs: ToyJobs) -> None:
    jobs.plan(data_0=["exit 4", "serve"])
    handle = jobs.submit()
    before = jobs.serving(handle)
    assert before.restarts["data"] == 1
    os.kill(before.pids["supervisor"], signal.SIGKILL)
    eventually(lambda: not jobs.processes())
    assert handle.wait(20).state == "lost"
    again = jobs.submit()
    assert again.epoch > handle.epoch
    eventually(lambda: len(again.status().pids) == 4)
    after = again.status()
    assert after.epoch > before.epoch
    assert after.restarts == {"supervisor": 1, "driver": 0, "data": 1, "trainer": 0}
    assert after.ends == {"data-0": 1}
    eventually(lambda: jobs.attempts("data-0") == [(1, 1), (1, 2), (again.epoch, 1)])


def test_a_supervisor_killed_while_its_roles_start_leaves_none(jobs: ToyJobs) -> None:
    handle = jobs.submit()
    eventually(lambda: len(handle.status().pids) == 4)
    # Their interpreters are loading now: none has asked yet to die with its parent.
    os.kill(handle.status().pids["supervisor"], signal.SIGKILL)
    eventually(lambda: not jobs.processes())
    assert handle.wait(5).state == "lost"
    handle.cancel()
    assert handle.wait(5).state == "cancelled", "what is lost can be cancelled"


def test_a_new_supervisor_ends_what_the_old_one_left(jobs: ToyJobs) -> None:
    handle = jobs.submit()
    status = jobs.serving(handle)
    marks = {"FOREBAY_JOB_ID": "j1", "FOREBAY_HOME": str(jobs.home.root)}
    with subprocess.Popen(["sleep", "300"], env=marks) as stray:
        os.kill(status.pids["supervisor"], signal.SIGKILL)
        eventually(lambda: handle.status().state == "lost")
        try:
            jobs.submit()
            assert stray.wait(10) == -signal.SIGKILL
        finally:
            stray.kill()


def test_cancel_ends_the_deaf_and_grandchildren(jobs: ToyJobs) -> None:
    jobs.plan(data_0=["deaf"], driver_0=["child"])
    handle = jobs.submit()
    status = jobs.serving(handle, "driver-0", "data-0")
    supervisor = psutil.Process(status.pids["supervisor"])
    below = supervisor.children(recursive=True)
    assert "sleep" in {process.name() for process in below}
    handle.cancel()
    assert handle.wait(20).state == "cancelled"
    assert not any(process.is_running() for process in below)


@pytest.mark.parametrize(
    ("word", "code", "error"), [("ConfigError", 1, ConfigError), ("DataError", 3, DataError)]
)
def test_errors_that_a_restart_cannot_mend(
    jobs: ToyJobs, word: str, code: int, error: type[Exception]
) -> None:
    jobs.plan(data_0=[f"raise {word} the price is on fire"])
    status = jobs.submit().wait(20)
    told = why(status)
    assert (told.error, told.exit_code, told.message) == (word, code, "the price is on fire")
    assert isinstance(told.exception(), error)
    assert status.restarts["data"] == 0
    assert jobs.processes() == []


def test_an_end_without_a_last_word_is_not_taken_for_wrong_yaml(jobs: ToyJobs) -> None:
    """Exit code 1 is also Python's own, of an import that fails."""
    jobs.plan(data_0=["exit 1"])
    status = jobs.submit().wait(20)
    assert why(status).exit_code == 4
    assert "data-0 ended with exit code 1" in why(status).message
    assert status.restarts["data"] == 0


def test_restarts_are_bounded(jobs: ToyJobs) -> None:
    jobs.plan(driver_0=["exit 0", "exit 4"])
    status = jobs.submit(failover={"restarts_max": 2}).wait(20)
    assert (status.restarts["driver"], status.ends) == (2, {"driver-0": 3})
    assert why(status).exit_code == 4
    assert "driver-0 ended with exit code 4" in why(status).message


def test_a_killed_process_starts_again(jobs: ToyJobs) -> None:
    handle = jobs.submit(roles={"data": {"count": 2}})
    jobs.serving(handle, "driver-0", "data-1", "trainer-0")
    for name in ("driver-0", "data-1", "trainer-0"):
        eventually(lambda: len(handle.status().pids) == 5)
        before = handle.status().pids
        os.kill(before[name], signal.SIGKILL)
        eventually(lambda: len({*handle.status().pids.values()} - {*before.values()}) == 1)  # noqa: B023
        after = handle.status()
        assert after.restarts[name.partition("-")[0]] == 1
        assert {each for each, pid in after.pids.items() if pid != before[each]} == {name}


QUICK = {"progress_deadlines": dict.fromkeys(("driver", "data", "trainer"), "5s")}


def test_what_hangs_and_lives_starts_again_and_what_is_slow_or_waits_goes_on(jobs: ToyJobs) -> None:
    jobs.plan(driver_0=["serve"], data_0=["hang", "serve"], data_1=["slow"])
    handle = jobs.submit(failover=QUICK, roles={"data": {"count": 2}})
    jobs.serving(handle, "driver-0", "data-0", "data-1", "trainer-0")
    before = handle.status().pids
    os.kill(before["trainer-0"], signal.SIGSTOP)
    eventually(lambda: sum(handle.status().restarts.values()) == 2, 30)
    status = handle.status()
    assert status.restarts == {"supervisor": 0, "driver": 0, "data": 1, "trainer": 1}
    assert sorted(re.sub(r"\d+ s", "N s", each) for each in status.hung) == [
        "data-0 hung: no progress for N s (data)",
        "trainer-0 hung: no sign of life for N s",
    ]
    for name, place in (("data-0", "in act"), ("trainer-0", "in act")):
        log = (jobs.home.job("j1") / "logs" / f"{name}.log").read_text()
        assert "most recent call first" in log
        assert place in log
    assert {name: pid for name, pid in status.pids.items() if pid == before.get(name)}.keys() == {
        "supervisor",
        "driver-0",
        "data-1",
    }


@pytest.mark.chaos
@pytest.mark.parametrize("role", ["driver", "data", "trainer"])
def test_what_always_hangs_fails_the_job_with_the_reason(jobs: ToyJobs, role: str) -> None:
    jobs.plan(**{f"{role}_0": ["hang"]})
    handle = jobs.submit(failover={**QUICK, "restarts_max": 1})
    status = handle.wait(120)
    assert (status.ends, why(status).exit_code) == ({f"{role}-0": 2}, 4)
    hung = rf"{role}-0 hung: no progress for \d+ s .* it has ended 2 times, .* in its log: "
    assert re.search(hung, why(status).message)


def test_one_model_line_is_trained_by_one_job(jobs: ToyJobs) -> None:
    first = jobs.submit("j1")
    with pytest.raises(LineBusyError, match="job j1 trains line 'main' of pipeline 'ads'"):
        jobs.submit("j2")
    assert why(attach(jobs.home, "j2").wait(5)).exit_code == 4
    first.cancel()
    first.wait(20)
    assert jobs.submit("j2").status().state == "running"


def test_a_job_of_another_line_is_never_replaced(jobs: ToyJobs) -> None:
    first, request = jobs.submit(), jobs.request()
    for _ in "12":
        for other in ({"line": "trial"}, {"pipeline_name": "ads-eu"}):
            with pytest.raises(UsageError, match="job j1 trains line 'main' of pipeline 'ads'"):
                submit(jobs.home, request.model_copy(update=other), SUPERVISOR)
        first.cancel()
        first.wait(20)  # it has ended the second time
    assert first.look().row.epoch == 1
    assert JobFolder(folder_of(first).path).request() == request


@pytest.mark.parametrize("killed", [False, True])
def test_no_socket_outlives_the_job(jobs: ToyJobs, killed: bool) -> None:
    handle = jobs.submit()
    status = jobs.serving(handle)
    made = listen(folder_of(handle).sockets, "driver", 0)
    made.close()
    assert len(list(folder_of(handle).sockets.iterdir())) == 1, "a token"
    if killed:
        os.kill(status.pids["supervisor"], signal.SIGKILL)
        handle.wait(20)
        handle = jobs.submit()
        jobs.serving(handle)
    else:
        handle.cancel()
        handle.wait(20)
    assert list(folder_of(handle).sockets.iterdir()) == []


def test_each_process_inherits_what_its_role_needs(
    jobs: ToyJobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in PLANTED.items():
        monkeypatch.setenv(name, value)
    request = jobs.request(roles={"data": {"runtime": {"environment": ["PLANTED_*"]}}})
    request.sources["clicks"]["options"] = {"table": f"${{{CONNECTION}}}"}
    handle = submit(jobs.home, request, SUPERVISOR)
    pids = jobs.serving(handle).pids
    names = ("supervisor", "driver-0", "data-0", "trainer-0")
    found = planted_in(psutil.Process(pids[name]) for name in names)
    planning = {CERTIFICATES, STORAGE_KEY, DECLARED, CONNECTION}
    assert found == [planning, planning, planning, {CERTIFICATES}]


def test_every_process_is_marked_private_and_no_zombie_of_the_submitter(jobs: ToyJobs) -> None:
    handle = jobs.submit()
    assert handle.wait(0.2).state == "running", "a wait has a deadline"
    status = jobs.serving(handle)
    folder = folder_of(handle).path
    assert stat.S_IMODE((folder / "job.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {process.environ()["FOREBAY_JOB_ID"] for process in jobs.processes()} == {"j1"}
    assert os.getsid(status.pids["supervisor"]) == status.pids["supervisor"]
    assert {os.getsid(pid) for pid in status.pids.values()} == {status.pids["supervisor"]}
    handle.cancel()
    handle.wait(20)
    eventually(lambda: not psutil.pid_exists(status.pids["supervisor"]))


def test_an_interpreter_that_is_not_there(jobs: ToyJobs) -> None:
    status = jobs.submit(roles={"trainer": {"runtime": {"python": "/no/such/python"}}}).wait(20)
    assert why(status).exit_code == 1
    assert "interpreter of role trainer cannot be run" in why(status).message
    assert jobs.processes() == []


def test_sigterm_to_the_supervisor_ends_all_and_is_red(jobs: ToyJobs) -> None:
    handle = jobs.submit()
    os.kill(jobs.serving(handle).pids["supervisor"], signal.SIGTERM)
    assert "signal" in why(handle.wait(20)).message
    assert jobs.processes() == []


def test_unknown_jobs_and_foreign_homes(jobs: ToyJobs, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no job 'j9'"):
        JobHandle(jobs.home, "j9", 1).status()
    with pytest.raises(UsageError, match="the request is for home"):
        submit(Home(tmp_path / "elsewhere"), jobs.request(), SUPERVISOR)


def test_a_job_goes_on_and_ends_while_its_database_is_away(
    jobs: ToyJobs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    new_database: Callable[[], str],
    postgres_server: PostgresServer,
) -> None:
    monkeypatch.setenv("FOREBAY_DATABASE", new_database())
    jobs.plan(trainer_0=[f"wait {tmp_path / 'done'}"])
    handle = jobs.submit()
    jobs.serving(handle, "driver-0", "data-0")
    eventually(lambda: len(handle.status().pids) == 4)
    before = handle.status()
    postgres_server.stop(signal.SIGKILL)
    try:
        os.kill(before.pids["data-0"], signal.SIGKILL)
        eventually(lambda: len(jobs.starts("data-0")) == 2)
        (tmp_path / "done").touch()
        # All roles are gone, and the supervisor waits for the database alone.
        eventually(lambda: [one.pid for one in jobs.processes()] == [before.pids["supervisor"]])
    finally:
        postgres_server.start()
    status = handle.wait(60)
    assert (status.state, status.pids) == ("succeeded", {})
    assert status.restarts["data"] == 1
    assert jobs.processes() == []
