"""Two homes with runtime folders and processes of their own, as two hosts that share a PostgreSQL
server and a store."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from support.kill_cases import assert_exact, expected_of
from support.kills import (
    is_alive,
    job_processes,
    kill_tree,
    log_of,
    no_process_left,
    pid_of,
    running,
)
from support.projects import DAY, FIRST_DAY, Project, ads_pipeline, ads_project
from support.standing import processes, runner_of, trained
from support.there import until
from support.toy_roles.jobs import eventually

from forebay.config.load import load_project
from forebay.executors.job.handle import JobHandle
from forebay.executors.job.runners import end_runner
from forebay.executors.model_line.chain import ModelChain
from forebay.home.database.open import close_databases, database_of
from forebay.home.database.tables import link_files, manifests
from forebay.home.paths import Home
from forebay.home.runtime import runtime_of
from forebay.home.store.open import store_of

pytestmark = pytest.mark.timeout(300)
KEY = f"{FIRST_DAY:%Y-%m-%d}"
RUN = ("run", "ads", "--from", KEY, "--to", KEY)
ROWS = 200_000


@pytest.fixture
def hosts(
    tmp_path: Path, new_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Project, Project]]:
    monkeypatch.setenv("FOREBAY_DATABASE", new_database())
    monkeypatch.setenv("FOREBAY_STORE", str(tmp_path / "store"))
    pipeline = ads_pipeline(checkpoint={"every_steps": 20})
    one = ads_project(tmp_path / "project", rows=ROWS, pipeline=pipeline)
    one = replace(one, home_folder=tmp_path / "one")
    yield one, replace(one, home_folder=tmp_path / "other")
    close_databases()


def copied_step(project: Project) -> int:
    """Of the newest seal that another host can continue from; 0 before the first."""
    seal = ModelChain(Home(project.home), "ads").seal(KEY, 1)
    return 0 if seal is None else seal.step


def assert_resumed(here: Project, sealed_by: Project) -> None:
    """The window was continued from what the other host had sealed, and that is gone."""
    home = Home(here.home)
    link = ModelChain(home, "ads").newest(KEY)
    assert link is not None
    assert 0 < link.resumed_from_step < link.steps
    assert link.resumed_from_runtime == runtime_of(Home(sealed_by.home))
    assert link.reread_rows >= 0
    told = f"resumed from step {link.resumed_from_step}, sealed by another host"
    assert told in log_of(here, "trainer-0")
    assert copied_step(here) == 0
    named = {
        name
        for table in (link_files, manifests)
        for name in database_of(home).read(lambda rows, of=table: rows.scalars(select(of.c.name)))
    }
    assert set(store_of(home).names("models/ads/main")) <= named


def stage(project: Project, name: str, *arguments: str) -> dict[str, Any]:
    return json.loads(project.forebay("stage", name, "ads", KEY, *arguments).stdout)


def plan(project: Project) -> None:
    for source in load_project(project.root / "config").pipeline("ads").source_names:
        assert stage(project, "source", source, "--asked-by", "run#1")["state"] == "listed"
    stage(project, "sink", "--asked-by", "run#1")


def test_planned_here_trained_there_published_here(hosts: tuple[Project, Project]) -> None:
    one, other = hosts
    plan(one)
    submitted = stage(other, "submit", "--claim", "run#1", "--previous", "none")
    assert submitted["state"] == "submitted"
    handle = JobHandle(Home(one.home), submitted["job_id"], submitted["epoch"])
    assert handle.wait(120).state == "succeeded"
    assert stage(one, "evaluate")["rows_line"]
    published = stage(one, "publish", "--generation", "1")
    assert published["state"] == "published"
    assert Path(published["path"]).is_dir()
    assert_exact(one)


def test_both_want_the_window_at_once(hosts: tuple[Project, Project]) -> None:
    """One trains it, the other follows; both end well."""
    plan(hosts[0])
    with running(hosts[0], *RUN) as first, running(hosts[1], *RUN) as second:
        for run in (first, second):
            output, _ = run.communicate(timeout=120)
            assert run.returncode == 0, output
    assert_exact(hosts[0])


@pytest.mark.guarantee(
    "the host of a job fails, or its network",
    "nothing; another host takes the job over after 30 s without a heartbeat, and the old job "
    "is refused if it wakes up; read again: what was trained since the newest seal in the store"
    " (one every 30 s); before the first one, the whole window",
)
def test_a_holder_that_sleeps_past_its_lease(hosts: tuple[Project, Project]) -> None:
    """All of its job is stopped; the other host goes on where it was, and what wakes is refused."""
    one, other = hosts
    with running(one, *RUN) as first:
        eventually(partial(copied_step, one), 60)
        supervisor = pid_of(one, "supervisor")
        stopped = sorted(job_processes(one), key=lambda process: process.pid == supervisor)
        for process in stopped:
            process.send_signal(signal.SIGSTOP)
        other.forebay(*RUN, timeout_seconds=150)
        assert_exact(other)
        assert_resumed(other, sealed_by=one)
        for process in stopped[:-1]:
            process.send_signal(signal.SIGCONT)
        # It trains its rows to their end, while nobody tells it that the line is not its own now.
        eventually(lambda: "trains this line now" in log_of(one, "trainer-0"), 60)
        stopped[-1].send_signal(signal.SIGCONT)
        told, _ = first.communicate(timeout=60)
        assert first.returncode == 0, told
    assert no_process_left(one, 30)
    assert "was submitted again" in log_of(one, "supervisor")
    assert_exact(other)


@pytest.mark.guarantee(
    "a host dies with its whole job in the middle of a window",
    "nothing; another host continues from the newest seal in the store; read again: what was "
    "trained since the newest seal in the store (one every 30 s); before the first one, the "
    "whole window",
)
@pytest.mark.chaos
def test_a_host_that_dies_in_the_middle_of_a_window(hosts: tuple[Project, Project]) -> None:
    """SIGKILL for all of its job: another host continues, and all rows are learnt once."""
    one, other = hosts
    with running(one, *RUN) as first:
        eventually(partial(copied_step, one), 60)
        kill_tree(one, first)
    other.forebay(*RUN, timeout_seconds=150)
    assert_exact(other)
    assert_resumed(other, sealed_by=one)


@pytest.mark.chaos
def test_lines_that_stand_on_two_hosts_take_turns_and_take_over(
    hosts: tuple[Project, Project],
) -> None:
    """What a trainer holds since its last window is older than what the other host has trained."""
    days = [f"{FIRST_DAY + number * DAY:%Y-%m-%d}" for number in range(5)]
    pipeline = ads_pipeline(checkpoint={"every_steps": 20}, process="standing")
    root = hosts[0].root.with_name("standing")
    one = ads_project(root, days=len(days), rows=ROWS // 4, pipeline=pipeline)
    one = replace(one, home_folder=hosts[0].home)
    other = replace(one, home_folder=hosts[1].home)

    def run(day: int) -> tuple[str, ...]:
        return ("run", "ads", "--from", days[day], "--to", days[day])

    try:
        for day, host in enumerate((one, other, one)):
            host.forebay(*run(day), process=True)
            assert trained(host) == expected_of(host, day + 1)
        assert processes(one).keys() == processes(other).keys() >= {"trainer", "driver"}
        victims = processes(one).values()
        with running(one, *run(3)) as first:
            eventually(lambda: ModelChain(Home(one.home), "ads").seal(days[3], 1), 60)
            kill_tree(one, first)
        assert not any(map(is_alive, victims))
        for day, host in ((3, other), (4, one)):
            host.forebay(*run(day), process=True, timeout_seconds=150)
            assert trained(host) == expected_of(host, day + 1)
    finally:
        for host in (one, other):
            end_runner(runner_of(host))
    assert until(lambda: not processes(one) and not processes(other), 20)
