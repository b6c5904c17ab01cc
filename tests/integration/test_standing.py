"""Standing lines: the processes of a window stay for the next one, which is otherwise the same."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from support import same_bytes
from support.jobs_here import jobs_in_this_process
from support.kill_cases import expected_of
from support.parquet_files import null_labels
from support.projects import Project, ads_pipeline, ads_project
from support.standing import processes, runner_of, trained
from support.strangers import until
from support.there import eventually

from forebay.executors.job.host import SUPERVISOR_ARGUMENTS
from forebay.executors.job.runners import Call, RunnerPlace, end_runner, runners_of
from forebay.executors.job.stored_jobs import newest_jobs
from forebay.executors.job.submit import attach, submit
from forebay.executors.model_line.chain import ModelChain
from forebay.home.paths import Home
from forebay.system.files.private_socket import socket_of

_OF_TIME = {"files", "started_at", "finished_at"}
ROLES = ("driver", "data", "trainer")
FIRST = ("--from", "2026-03-01", "--to", "2026-03-01")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[..., Project]]:
    """Makes projects; afterwards all runners end, and nothing of them is left."""
    projects: list[Project] = []

    def make(name: str = "standing", model: str = "count", rows: int = 400, **job: Any) -> Project:
        pipeline = ads_pipeline(model)
        pipeline["job"] = {**pipeline.get("job", {}), "process": "standing", **job}
        projects.append(ads_project(tmp_path / name, days=6, rows=rows, pipeline=pipeline))
        return projects[-1]

    yield make
    for each in projects:
        for place in runners_of(Home(each.home)).values():
            assert end_runner(place) == ""
    assert until(lambda: not any(processes(each) for each in projects), 20), "something is left"


def links(project: Project) -> list[dict[str, Any]]:
    chain = ModelChain(Home(project.home), "ads")
    return [link.model_dump(mode="json", exclude=_OF_TIME) for link in chain.links()]


def day(number: int) -> tuple[str, str]:
    return f"2026-03-{number:02d}", f"2026-03-{number:02d}"


def hour(number: int) -> tuple[str, str]:
    return f"2026-03-01T{number:02d}", f"2026-03-01T{number:02d}"


def newest(project: Project) -> Any:
    (job, *_), _ = newest_jobs(Home(project.home), "ads", None, 1)
    return job


def is_training(project: Project, number: int) -> bool:
    """Whether a job of this day has begun, and its processes are there."""
    job = newest(project)
    return day(number)[0] in job.job_id and bool(job.progress) and len(processes(project)) == 4


def test_windows_run_in_the_same_processes_and_leave_what_new_ones_leave(
    made: Callable[..., Project],
) -> None:
    standing, fresh = made(), made("fresh", process="per_window")
    seen = []
    for number in (1, 2, 3):
        for project in (standing, fresh):
            project.run(*day(number))
        seen.append(processes(standing))
        assert not newest(standing).host.is_held(newest(standing).job_id)
    assert set(seen[0]) == {"supervisor", "driver", "data_executor", "trainer"}
    assert seen[0] == seen[1] == seen[2]
    assert processes(fresh) == {}
    assert links(standing) == links(fresh)
    for number in (1, 2, 3):  # each job has the logs of its own processes
        logs = standing.home / "jobs" / "..".join([f"ads.main.{day(number)[0]}", day(number)[1]])
        assert "the job is over: succeeded" in (logs / "logs/supervisor.log").read_text()
        assert (logs / "logs/trainer-0.log").read_text().count("trainer-0 starts at") == 1


def test_models_of_two_labels_are_equal_to_the_bit(tmp_path: Path) -> None:
    """With delay heads, a judge and rivals. At last the first window is trained again."""
    made = same_bytes.pipeline(sale=True)
    made["job"]["process"] = "standing"
    standing = Project(same_bytes.written(tmp_path / "standing", sale=True), made)
    fresh = Project(same_bytes.written(tmp_path / "fresh", sale=True))
    standing.write_pipeline()
    asked = [(window, window) for window in same_bytes.WINDOWS]
    asked.append((*asked[0], "--reprocess"))  # it begins with initial values
    pids = []
    for each in asked:
        standing.run(*each)
        pids.append(processes(standing))
        with jobs_in_this_process():
            fresh.run(*each)
    end_runner(runner_of(standing))
    assert pids == [pids[0]] * len(asked)
    assert same_bytes.models(standing) == same_bytes.models(fresh)
    scores = [repr(same_bytes.scores(each, ("", "sale"))) for each in (standing, fresh)]
    assert scores[0] == scores[1]


@pytest.mark.parametrize("victim", ["driver", "data_executor", "trainer", "supervisor"])
def test_a_process_that_dies_while_nothing_runs_is_replaced(
    made: Callable[..., Project], victim: str
) -> None:
    project = made()
    project.run(*day(1))
    before = processes(project)
    os.kill(before[victim], signal.SIGKILL)
    assert until(lambda: victim not in processes(project), 10)
    project.run(*day(2))
    after = processes(project)
    assert len(after) == 4
    kept = {name for name in after if after[name] == before[name]}
    assert kept == (set() if victim == "supervisor" else set(before) - {victim})
    assert len(links(project)) == 2


@pytest.mark.parametrize("victim", ["driver", "data_executor", "trainer", "supervisor"])
def test_a_process_that_dies_in_the_second_window_loses_and_repeats_nothing(
    made: Callable[..., Project], victim: str
) -> None:
    project = made(rows=20_000, checkpoint={"every_steps": 20})
    project.pipeline["train"]["minibatch_rows"] = 20
    project.write_pipeline()
    project.run(*day(1))
    running = project.start("run", "ads", "--from", day(2)[0], "--to", day(2)[1])
    assert until(lambda: is_training(project, 2), 60)
    os.kill(processes(project)[victim], signal.SIGKILL)
    assert newest(project).status.state != "succeeded", "it was killed too late to show anything"
    told, _ = running.communicate(timeout=90)
    assert running.returncode == 0, told
    project.run(*day(3))
    assert trained(project) == expected_of(project, 3)


def test_a_cancel_ends_the_trainer_alone(made: Callable[..., Project]) -> None:
    project = made(rows=20_000)
    project.run(*day(1))
    project.pipeline["train"]["minibatch_rows"] = 20
    project.write_pipeline()
    running = project.start("run", "ads", "--from", day(2)[0], "--to", day(2)[1])
    assert until(lambda: is_training(project, 2), 60)
    before, job = processes(project), newest(project)
    handle = attach(Home(project.home), job.job_id)
    handle.cancel()
    assert handle.wait(30).state == "cancelled"
    running.communicate(timeout=30)
    assert running.returncode != 0
    assert until(lambda: "trainer" not in processes(project), 20)
    assert processes(project) == {name: pid for name, pid in before.items() if name != "trainer"}
    project.run(*day(2))
    after = processes(project)
    assert {name for name in after if after[name] == before[name]} == set(before) - {"trainer"}
    assert len(links(project)) == 2


@pytest.mark.parametrize("change", ["declaration", "variable"])
def test_a_runner_ends_when_what_it_was_started_for_changes(
    made: Callable[..., Project], change: str
) -> None:
    project = made()
    project.run(*day(1))
    before = processes(project)
    if change == "declaration":
        project.pipeline["train"]["minibatch_rows"] = 64
        project.write_pipeline()
    else:
        project.environment["AWS_SECRET_ACCESS_KEY"] = "other than before"
    project.run(*day(2))
    assert until(lambda: not set(before.values()) & set(processes(project).values()), 10)
    log = "".join(each.read_text() for each in project.home.glob("jobs/*/logs/supervisor.log"))
    name = "its declarations" if change == "declaration" else "$AWS_SECRET_ACCESS_KEY"
    assert f"ending: {name} changed since this runner started" in log
    assert "other than before" not in log


def test_a_runner_ends_after_its_idle_time(made: Callable[..., Project]) -> None:
    project = made(standing={"idle": "2s"})
    project.run(*day(1))
    assert processes(project)
    assert until(lambda: not processes(project), 15)
    project.run(*day(2))
    assert len(links(project)) == 2


def test_processes_are_there_again_ahead_of_the_next_window(made: Callable[..., Project]) -> None:
    left = 3600 - time.time() % 3600
    time.sleep(left if left < 60 else 0)
    ahead = f"{int(3600 - time.time() % 3600) - 40}s"
    project = made(standing={"idle": "1s", "ahead": ahead})
    fresh = made("fresh", process="per_window")
    for each in (project, fresh):
        each.pipeline["dataset"]["window"] = "1h"
        each.write_pipeline()
    project.run(*hour(0))
    assert until(lambda: list(processes(project)) == ["supervisor"], 10)
    before = eventually(lambda: len(found := processes(project)) == 4 and found, 60)
    log = runner_of(project).folder / "ahead.log"
    eventually(lambda: "trainer is ready" in log.read_text(), 20)
    project.run(*hour(1))
    assert processes(project) == before
    for number in (0, 1):
        fresh.run(*hour(number))
    assert links(project) == links(fresh)


def test_its_processes_start_anew_above_their_memory(made: Callable[..., Project]) -> None:
    project = made(standing={"memory": "64MiB"})
    project.run(*day(1))
    supervisor = processes(project)["supervisor"]
    assert until(lambda: list(processes(project)) == ["supervisor"], 10)
    project.run(*day(2))
    assert processes(project)["supervisor"] == supervisor


def test_the_line_that_has_waited_longest_ends_above_the_budget(
    made: Callable[..., Project],
) -> None:
    """Three lines of one home; the budget holds two."""
    project = made()
    for line in ("one", "two"):
        project.run(*day(1), "--line", line)
    home = Home(project.home)
    places = {line: RunnerPlace(home, "ads", line) for line in ("one", "two", "three")}
    told = {line: places[line].ask(Call(ask="look")) for line in ("one", "two")}
    memory = [each.memory_bytes for each in told.values() if each is not None]
    assert len(memory) == 2
    assert min(memory) > 100 * 2**20
    budget = f"{int(2.5 * max(memory)) // 2**20}MiB"
    # Runners of other variables would end: the variable counts in the one that comes last.
    project.environment["FOREBAY_WARM_MEMORY"] = budget
    project.run(*day(1), "--line", "three")
    assert until(lambda: places["one"].ask(Call(ask="look")) is None, 10)
    assert places["two"].ask(Call(ask="look")) is not None
    assert places["three"].ask(Call(ask="look")) is not None
    listed = json.loads(project.forebay("jobs", "runners", "--end", "--output", "json").stdout)
    assert [(each["line"], each["state"]) for each in listed] == [
        ("ads.three", "ended"),
        ("ads.two", "ended"),
    ]
    assert until(lambda: "no line" in project.forebay("jobs", "runners").stdout, 10)


def test_a_runner_that_is_stopped_keeps_nobody_waiting(made: Callable[..., Project]) -> None:
    project = made()
    project.run(*day(1))
    runner = processes(project)["supervisor"]
    os.kill(runner, signal.SIGSTOP)
    try:
        project.run(*day(2))
    finally:
        os.kill(runner, signal.SIGCONT)
    assert len(links(project)) == 2


def test_a_failed_window_ends_the_runner(made: Callable[..., Project]) -> None:
    project = made()
    project.run(*day(1))
    null_labels(next(project.files.glob("date=2026-03-01/*.parquet")), 10)  # refused by the job
    failed = project.forebay("run", "ads", "--from", day(2)[0], "--to", day(2)[1], check=False)
    assert failed.returncode != 0
    assert newest(project).status.state == "failed"
    assert until(lambda: not processes(project), 20)


def test_many_windows_leave_memory_and_descriptors_as_they_were(
    made: Callable[..., Project],
) -> None:
    project = made()

    def used() -> dict[str, tuple[int, int, int]]:
        found = {name: psutil.Process(pid) for name, pid in processes(project).items()}
        return {
            name: (each.memory_info().rss >> 20, each.num_fds(), each.num_threads())
            for name, each in found.items()
        }

    for _ in range(4):
        project.run(*day(1), "--reprocess")
    before = used()
    for _ in range(8):
        project.run(*day(1), "--reprocess")
    after = used()
    for name, (memory, descriptors, threads) in after.items():
        # Connections of a pool come and go.
        assert descriptors <= before[name][1] + 4, (name, before, after)
        assert threads <= before[name][2] + 1, (name, before, after)
        assert memory <= before[name][0] + 12, (name, before, after)


def test_a_budget_that_is_none_is_refused_before_anything_is_submitted(
    made: Callable[..., Project],
) -> None:
    project = made()
    project.environment["FOREBAY_WARM_MEMORY"] = "much"
    failed = project.forebay("run", "ads", "--from", day(1)[0], "--to", day(1)[1], check=False)
    assert failed.returncode == 1
    assert "FOREBAY_WARM_MEMORY: memory is a number and a unit" in failed.stderr
    assert newest_jobs(Home(project.home), "ads", None, 1) == ([], 0)


def test_a_runner_that_nobody_reaches_any_more_ends_and_leaves_its_successor_alone(
    made: Callable[..., Project],
) -> None:
    """It lived on for all of `idle`, and then removed the socket of the one that had come."""
    project = made()
    project.run(*day(1))
    before, place = processes(project), runner_of(project)
    socket_of(place.folder).unlink()
    assert until(lambda: not processes(project), 20), before
    project.run(*day(2))
    folder, moved = place.folder.parent, place.folder.parent.with_name("moved")
    folder.rename(moved)
    project.run(*day(3))
    successor = place.ask(Call(ask="look"))
    assert successor is not None
    assert until(lambda: len(processes(project)) == 4, 20)
    assert place.ask(Call(ask="look")) is not None
    moved.rename(folder.with_name("left"))
    assert len(links(project)) == 3


@pytest.mark.parametrize("how", ["a socket that is a folder", "a folder that is open to others"])
def test_a_place_that_cannot_be_used_stops_no_other_line(
    made: Callable[..., Project], how: str
) -> None:
    project = made()
    project.run(*day(1))
    other = RunnerPlace(Home(project.home), "ads", "other")
    other.folder.mkdir(parents=True, mode=0o700)
    if how == "a socket that is a folder":
        socket_of(other.folder).mkdir()
        project.run(*day(1), "--line", "other")
        assert len(processes(project)) == 4, "without a place its processes end with the job"
        socket_of(other.folder).rmdir()
        return
    other.folder.chmod(0o755)
    refused = project.forebay("run", "ads", "--line", "other", *FIRST, check=False)
    assert refused.returncode == 4
    assert "remove it" in refused.stderr
    assert newest_jobs(Home(project.home), "ads", "other", 1)[0] == [], "nothing was submitted"
    project.environment["FOREBAY_WARM_MEMORY"] = "64GiB"
    project.run(*day(2))
    listed = json.loads(project.forebay("jobs", "runners", "--output", "json").stdout)
    assert [each["line"] for each in listed] == ["ads.main"]
    other.folder.chmod(0o700)


def test_a_runner_is_told_to_end_when_its_line_no_longer_has_one(
    made: Callable[..., Project], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the interpreter's name, as the declaration has it, is no reason to start anew."""
    project = made()
    python = str(Path(sys.executable).parent / ".." / "bin" / Path(sys.executable).name)
    command = (python, *SUPERVISOR_ARGUMENTS)
    monkeypatch.setattr(submit, "__defaults__", (command, *(submit.__defaults__ or ())[1:]))
    project.run(*day(1))
    before = processes(project)
    project.run(*day(2))
    assert processes(project) == before
    project.pipeline["job"]["process"] = "per_window"
    project.write_pipeline()
    project.run(*day(3))
    assert until(lambda: not processes(project), 20)
