"""Limits of a job's processes: real control groups, toy roles, the real supervisor."""

from __future__ import annotations

import json
import os
import signal
import time

import psutil
import pytest
from pydantic import ValidationError
from sqlalchemy import update
from support.jobs import folder_of
from support.toy_roles.jobs import SUPERVISOR, ToyJobs, eventually

from forebay.cli import run
from forebay.errors import ConfigError, InfrastructureError, UsageError
from forebay.executors.job.handle import JobHandle, resize
from forebay.executors.job.submit import submit
from forebay.executors.roles.resources import Resources
from forebay.home.database.open import database_of
from forebay.home.database.tables import jobs as table
from forebay.system.processes.cgroups import ControlGroups

HERE = ControlGroups.found()
REFUSAL = HERE.memory_refusal or HERE.cpu_refusal
limited = pytest.mark.skipif(bool(REFUSAL), reason=f"no limits here: {REFUSAL}")
MIB = 2**20


@limited
@pytest.mark.parametrize(
    ("process", "block"), [("trainer-0", "trainer"), ("data-0", "data"), ("driver-0", "data")]
)
def test_too_little_memory_ends_a_job_red_with_the_key_to_raise(
    jobs: ToyJobs, process: str, block: str
) -> None:
    jobs.plan(**{process.replace("-", "_"): ["grow"]})
    status = jobs.submit(roles={block: {"memory": "96MiB"}}).wait(60)
    assert status.error is not None
    assert status.error.message == (
        f"{process} was ended twice for want of memory: peak 96 MiB of 96 MiB: "
        f"raise job.roles.{block}.memory"
    )
    assert (status.error.error, status.error.exit_code) == ("ConfigError", ConfigError.exit_code)
    assert len(jobs.starts(process)) == 2


@limited
def test_a_kill_from_outside_is_no_want_of_memory(jobs: ToyJobs) -> None:
    handle = jobs.submit(roles={"trainer": {"memory": "256MiB"}})
    for _ in range(3):
        pid = jobs.serving(handle).pids["trainer-0"]
        os.kill(pid, signal.SIGKILL)
        eventually(lambda pid=pid: handle.status().pids.get("trainer-0", pid) != pid)
    assert jobs.serving(handle).restarts["trainer"] == 3


@limited
def test_a_quota_holds_from_the_first_sign_of_life_on(jobs: ToyJobs) -> None:
    jobs.plan(trainer_0=["spin"])
    handle = jobs.submit(roles={"trainer": {"cpu": 0.5}})
    assert cores_of(handle, settle_seconds=2.5) <= 0.55  # a busy machine gives less
    assert resize(handle.look(), "trainer", {"cpu_cores": 0.2}) == {}
    assert cores_of(handle) <= 0.22
    assert resize(handle.look(), "trainer", {"cpu_cores": None}) == {}
    eventually(lambda: cores_of(handle, seconds=1.0) > 0.25, 60)


def cores_of(handle: JobHandle, settle_seconds: float = 0.2, seconds: float = 3.0) -> float:
    eventually(lambda: "trainer-0" in handle.status().pids)
    process = psutil.Process(handle.status().pids["trainer-0"])
    time.sleep(settle_seconds)
    before, began = sum(process.cpu_times()[:2]), time.monotonic()
    time.sleep(seconds)
    return (sum(process.cpu_times()[:2]) - before) / (time.monotonic() - began)


@limited
def test_memory_is_resized_up_and_down_but_not_below_use(jobs: ToyJobs) -> None:
    handle = jobs.submit(roles={"trainer": {"memory": "400MiB"}})
    jobs.serving(handle)
    assert resize(handle.look(), "trainer", {"memory_bytes": 900 * MIB}) == {}
    assert resize(handle.look(), "trainer", {"memory_bytes": 300 * MIB}) == {}
    unmet = resize(handle.look(), "trainer", {"memory_bytes": MIB})
    assert list(unmet) == ["trainer-0"]
    assert "MiB are in use" in unmet["trainer-0"]
    assert resize(handle.look(), "trainer", {"memory_bytes": 350 * MIB}) == {}
    assert handle.status().unmet == {}
    assert handle.status().restarts["trainer"] == 0


@limited
def test_memory_that_is_not_counted_is_not_limited(jobs: ToyJobs) -> None:
    handle = jobs.submit(roles={"data": {"memory": "256MiB"}})
    status = jobs.serving(handle)
    unmet = resize(handle.look(), "trainer", {"memory_bytes": 256 * MIB})
    assert "it started without a limit" in unmet["trainer-0"]
    os.kill(status.pids["trainer-0"], signal.SIGKILL)
    eventually(lambda: handle.status().unmet == {})
    assert handle.status().restarts["trainer"] == 1
    refused = resize(handle.look(), "data", {"memory_bytes": MIB})
    assert "MiB are in use" in refused["data-0"]
    with pytest.raises(ValidationError):
        resize(handle.look(), "data", {"memory_bytes": -1})


def test_who_waits_for_a_supervisor_that_is_gone_is_told_so(jobs: ToyJobs) -> None:
    handle = jobs.submit()
    supervisor = jobs.serving(handle).pids["supervisor"]
    os.kill(supervisor, signal.SIGKILL)
    began = time.monotonic()
    with pytest.raises(InfrastructureError, match="lost its supervisor: run its windows again"):
        resize(handle.look(), "trainer", {"cpu_cores": 1.0})
    assert time.monotonic() - began < 5


def test_what_cannot_be_resized_is_said(jobs: ToyJobs) -> None:
    handle = jobs.submit()
    jobs.serving(handle)
    with pytest.raises(UsageError, match="no role 'cache': it has driver, data, trainer"):
        resize(handle.look(), "cache", {"cpu_cores": 1.0})
    handle.cancel()
    handle.wait(20)
    with pytest.raises(UsageError, match="has ended"):
        resize(handle.look(), "trainer", {"cpu_cores": 1.0})


def test_one_too_many_is_ended_and_one_too_few_is_started(jobs: ToyJobs) -> None:
    handle = jobs.submit(roles={"data": {"count": 2}})
    jobs.serving(handle, "driver-0", "data-0", "data-1", "trainer-0")
    want(handle, version=7, data=1)
    eventually(lambda: "data-1" not in handle.status().pids)
    want(handle, version=6, data=3)  # nobody goes back
    want(handle, version=8, data=2)
    eventually(lambda: "data-1" in handle.status().pids)
    status = handle.status()
    assert (sorted(status.pids), status.restarts["data"], status.acted_on) == (
        ["data-0", "data-1", "driver-0", "supervisor", "trainer-0"],
        0,
        8,
    )
    eventually(lambda: jobs.attempts("data-1") == [(1, 1), (1, 2)])


def want(handle: JobHandle, version: int, data: int) -> None:
    """As somebody who scales a job would."""
    wanted = handle.look().row.wanted
    counts = {**wanted.counts, "data": data}
    found = wanted.model_copy(update={"version": version, "counts": counts})
    values = {"desired": found.model_dump_json()}
    database_of(handle.home).transact(
        lambda rows: rows.execute(update(table).values(values)) and None
    )
    time.sleep(1.5)  # a supervisor looks every second


@pytest.mark.parametrize(
    "counts", [{"cache": 1}, {"data": -1}, {"data": 1025}], ids=["unknown", "negative", "too many"]
)
def test_a_damaged_row_ends_the_job_and_nobody_runs_on(
    jobs: ToyJobs, counts: dict[str, int]
) -> None:
    handle = jobs.submit()
    jobs.serving(handle)
    found = json.loads(handle.look().row.desired)
    text = json.dumps({**found, "version": 9, "counts": {**found["counts"], **counts}})
    database_of(handle.home).transact(
        lambda rows: rows.execute(update(table).values(desired=text)) and None
    )
    eventually(lambda: not jobs.processes())
    log = (folder_of(handle).path / "logs" / "supervisor.log").read_text()
    assert "the database has a damaged row (what is wanted of job j1)" in log


def test_what_is_wanted_outlives_the_supervisor(jobs: ToyJobs) -> None:
    """It dies between the writing and the acting; the next one acts."""
    handle = jobs.submit()
    supervisor = jobs.serving(handle).pids["supervisor"]
    os.kill(supervisor, signal.SIGSTOP)
    wanted = handle.look().row.wanted
    counts = {**wanted.counts, "data": 3}
    found = wanted.model_copy(update={"version": wanted.version + 1, "counts": counts})
    database_of(handle.home).transact(
        lambda rows: rows.execute(update(table).values(desired=found.model_dump_json())) and None
    )
    os.kill(supervisor, signal.SIGKILL)
    eventually(lambda: handle.status().state == "lost")
    again = submit(jobs.home, jobs.request(), SUPERVISOR)
    eventually(lambda: {"data-0", "data-1", "data-2"} <= set(again.status().pids))
    os.kill(again.status().pids["supervisor"], signal.SIGKILL)
    eventually(lambda: again.status().state == "lost")
    declared = jobs.submit(roles={"data": {"count": 2}})  # the pipeline was changed meanwhile
    assert declared.look().row.wanted.counts["data"] == 2
    declared.cancel()
    declared.wait(20)
    ended = jobs.submit()  # after an end, as declared
    assert "data-1" not in jobs.serving(ended).pids


def test_who_is_registered_is_told_by_the_row(jobs: ToyJobs) -> None:
    """So that a scheduler's worker needs no folder of the job."""
    handle = jobs.submit(roles={"data": {"count": 2}})
    jobs.serving(handle, "data-0", "data-1")
    assert handle.status().registered == 0  # toys register nowhere
    for index in (0, 1):
        folder_of(handle).process("data", index).registered("unix:here")
    eventually(lambda: handle.status().registered == 2)
    os.kill(handle.status().pids["data-1"], signal.SIGKILL)
    eventually(lambda: handle.status().registered == 1)


@limited
def test_the_command_line(
    jobs: ToyJobs, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FOREBAY_HOME", str(jobs.home.root))
    handle = jobs.submit(roles={"trainer": {"memory": "400MiB"}})
    jobs.serving(handle)
    assert run(["jobs", "top", "ads"]) == 0
    assert capsys.readouterr().out == "job j1: nothing is measured yet\n"
    eventually(folder_of(handle).measures.newest)
    assert run(["jobs", "top", "ads"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("job         j1, running: the ")
    assert "bottleneck  starting: no trainer has reported yet" in told
    assert run(["jobs", "top", "ads", "--output", "json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["processes"]) == {
        "driver-0",
        "data-0",
        "trainer-0",
    }
    assert run(["jobs", "resize", "ads", "trainer", "memory=300MiB", "cpu=0.5"]) == 0
    assert capsys.readouterr().out == "trainer of job j1: memory=300MiB cpu=0.5\n"
    limits = handle.look().row.wanted.resources["trainer"]
    assert limits == Resources(cpu_cores=0.5, memory_bytes=300 * MIB)
    assert run(["jobs", "resize", "ads", "trainer", "cpu=none"]) == 0
    assert handle.look().row.wanted.resources["trainer"].cpu_cores is None
    for wrong, why in (
        (["cpu=lots"], "cpu=lots: Input should be a valid number"),
        (["memory=2"], "memory=2: "),
        (["disk=1GiB"], "'disk=1GiB': write cpu=CORES or memory=2GiB, each once"),
        (["cpu=1", "cpu=2"], "'cpu=2': write cpu=CORES or memory=2GiB, each once"),
    ):
        capsys.readouterr()
        assert run(["jobs", "resize", "ads", "trainer", *wrong]) == UsageError.exit_code
        assert why in capsys.readouterr().err
