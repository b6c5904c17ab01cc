"""The plane `inline`: the same rows and links as with processes, in the process that submits."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.projects import Project, ads_pipeline, ads_project
from support.there import eventually

from forebay.errors import ConfigError
from forebay.executors.job.stored_jobs import StoredJob, newest_jobs
from forebay.executors.job.submit import attach
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.lease import line_holder
from forebay.executors.planes.base import Launch
from forebay.executors.roles.resources import Resources
from forebay.executors.supervisor import inline
from forebay.executors.supervisor.inline import InlinePlane
from forebay.executors.supervisor.supervisor import Supervisor
from forebay.home.paths import Home
from forebay.mixture.counting import CountingLearner
from forebay.mixture.minibatch import Minibatch

_DIFFERENT = {"files", "started_at", "finished_at"}


def project_of(root: Path, plane: str, rows: int = 400, **more: Any) -> Project:
    pipeline = ads_pipeline()
    pipeline["job"] = {**pipeline.get("job", {}), "plane": plane, **more}
    return ads_project(root / plane, days=3, rows=rows, pipeline=pipeline)


def links(project: Project) -> list[dict[str, Any]]:
    chain = ModelChain(Home(project.home), "ads")
    return [link.model_dump(mode="json", exclude=_DIFFERENT) for link in chain.links()]


def threads() -> set[str]:
    return {each.name for each in threading.enumerate()} & {"driver-0", "data-0", "trainer-0"}


def test_it_leaves_what_processes_leave_and_no_thread(tmp_path: Path) -> None:
    found = {}
    for plane in ("local", "inline"):
        project = project_of(tmp_path, plane)
        project.run("2026-03-01", "2026-03-02")
        project.run("2026-03-02", "2026-03-02", "--reprocess")
        found[plane] = links(project)
    assert len(found["local"]) == 3
    assert found["inline"] == found["local"]
    assert threads() == set()


def test_a_job_that_is_cancelled_ends_its_threads_and_can_run_again(tmp_path: Path) -> None:
    project = project_of(tmp_path, "inline")
    home = Home(project.home)

    def cancel() -> None:
        eventually(lambda: threads() == {"driver-0", "data-0", "trainer-0"}, 30)
        (job, *_), _ = newest_jobs(home, "ads", None, 1)
        attach(home, job.job_id).cancel()

    cancelling = threading.Thread(target=cancel)
    cancelling.start()
    asked = ("--from", "2026-03-01", "--to", "2026-03-03")
    assert project.forebay("run", "ads", *asked, check=False).returncode != 0
    cancelling.join(30)
    (job, *_), _ = newest_jobs(home, "ads", None, 1)
    assert job.status.state == "cancelled"
    assert not job.host.is_held(job.job_id)
    eventually(lambda: threads() == set())
    project.run("2026-03-01", "2026-03-03")
    assert len(links(project)) == 3


def test_a_late_trainer_ends_before_the_next_one_may_begin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both would write into the same folder of the window."""
    is_training, may_go_on, learn = threading.Event(), threading.Event(), CountingLearner.learn

    def late(learner: CountingLearner, minibatch: Minibatch) -> dict[str, float]:
        is_training.set()
        may_go_on.wait(60)
        return learn(learner, minibatch)

    monkeypatch.setattr(CountingLearner, "learn", late)
    monkeypatch.setattr(Supervisor.__init__, "__defaults__", (0.1, None, None))
    project = project_of(tmp_path, "inline")
    home = Home(project.home)
    held: list[bool] = []

    def cancel() -> None:
        is_training.wait(60)
        (job, *_), _ = newest_jobs(home, "ads", None, 1)
        attach(home, job.job_id).cancel()
        time.sleep(1)
        held.append(job.host.is_held(job.job_id))
        held.append(line_holder(home, "ads", "main") == job.job_id)
        may_go_on.set()

    cancelling = threading.Thread(target=cancel)
    cancelling.start()
    asked = ("--from", "2026-03-01", "--to", "2026-03-01")
    assert project.forebay("run", "ads", *asked, check=False).returncode != 0
    cancelling.join(60)
    assert held == [True, True]
    assert "trainer-0" not in threads()
    project.run("2026-03-01", "2026-03-01")


def open_below(folder: Path) -> list[str]:
    """What this process has open there: libraries keep descriptors of their own."""
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            found.append(str(descriptor.readlink()))
    return [each for each in found if each.startswith(str(folder))]


def test_it_leaves_no_descriptor_open(tmp_path: Path) -> None:
    project = project_of(tmp_path, "inline")
    project.run("2026-03-01", "2026-03-01")
    eventually(lambda: not open_below(project.home / "jobs"))
    assert open_below(project.home) == []


def test_ctrl_c_ends_the_job_too_and_it_can_run_again(tmp_path: Path) -> None:
    project = project_of(tmp_path, "inline", rows=4_000, checkpoint={"every_steps": 1})
    project.pipeline["train"]["minibatch_rows"] = 50
    project.write_pipeline()
    home, asked = Home(project.home), ("--from", "2026-03-01", "--to", "2026-03-02")

    def newest() -> StoredJob | None:
        found, _ = newest_jobs(home, "ads", None, 1)
        return found[0] if found else None

    def trained() -> bool:
        progress = job.progress if (job := newest()) is not None else None
        return progress is not None and progress.step > 0

    running = project.start("run", "ads", *asked)
    eventually(trained, 60)
    running.send_signal(signal.SIGINT)
    said, _ = running.communicate(timeout=60)
    job = newest()
    assert job is not None
    assert (running.returncode, job.status.state) == (130, "cancelled")
    assert f"job {job.job_id} ran in this process and ends with it" in said
    assert "Traceback" not in said
    project.run("2026-03-01", "2026-03-01")


def test_a_job_that_cannot_start_is_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_job: Path, _lock: int) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(inline, "start_here", fails)
    project = project_of(tmp_path, "inline")
    asked = ("--from", "2026-03-01", "--to", "2026-03-01")
    assert "new thread" in project.forebay("run", "ads", *asked, check=False).stderr
    (job, *_), _ = newest_jobs(Home(project.home), "ads", None, 1)
    assert not job.host.is_held(job.job_id)
    assert job.status.state == "lost"


def test_what_only_processes_can_do_is_refused_or_said(tmp_path: Path) -> None:
    plane = InlinePlane("job")
    limits, log = Resources(memory_bytes=1), tmp_path / "log"
    given = ("--job", str(tmp_path), "--index", "0", "--attempt", "1")
    launch = Launch("driver", 0, (), {}, log, limits, given)
    execution = plane.start(launch)
    assert execution.limits.outcome == "unsupported"
    assert execution.identity.pid == os.getpid()
    assert not execution.identity.kill(), "it would end this process"
    plane.stop(5)
    checked = project_of(tmp_path, "inline").forebay("check").stderr
    assert "plane: inline runs the whole job in the process that submits it" in checked


def test_a_role_without_a_body_runs_in_processes_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from support.others_role import CACHE

    plane = InlinePlane("job")
    monkeypatch.setitem(plane._roles, "cache", CACHE)
    with pytest.raises(ConfigError, match="role 'cache' runs in processes only"):
        plane.start(Launch("cache", 0, (), {}, tmp_path / "log"))
