"""Submitting the job of one window: one generation, one training, whatever dies at any time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from support import links, projects
from support.model_lines import plan_empty, put, record
from support.stages import replanned
from support.toy_roles.jobs import ToyJobs

from forebay.config.load import Project, load_project
from forebay.datatasks.plans.ledger import Ledger
from forebay.executors.job.handle import JobHandle
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.stages import submit
from forebay.executors.stages.results import SubmitResult
from forebay.executors.stages.submit import submit_window
from forebay.executors.stages.target import LineTarget
from forebay.executors.stages.turn import PreviousRun

FIRST = "2026-03-01"
TOY_SUPERVISOR = ("-P", "-m", "support.toy_roles.supervisor")

# Calls in children of one process that has everything imported, each killed after its delay.
KILLED_CALLS = """
import json, os, signal, sys, time
from pathlib import Path
from forebay.config.load import load_project
from forebay.executors.stages import submit
from forebay.executors.stages.target import StageTarget
from forebay.executors.stages.turn import PreviousRun
from forebay.home.paths import Home
root, home, delays = Path(sys.argv[1]), Home(Path(sys.argv[2])), json.loads(sys.argv[3])
submit.SUPERVISOR_ARGUMENTS = ("-P", "-m", "support.toy_roles.supervisor")
project = load_project(root / "config")
pipeline = project.pipeline("ads")
window = pipeline.dataset.grid.parse("2026-03-01")
target = StageTarget(project, pipeline, home, "main", window)
for delay in delays:
    child = os.fork()
    if child == 0:
        result = submit.submit_window(
            target, claim="run#1", again=True, previous=PreviousRun.NONE
        )
        print(result.model_dump_json(), flush=True)
        os._exit(0)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


class Windows(NamedTuple):
    """The first window of a pipeline, and toy roles that train it."""

    project: Project
    jobs: ToyJobs
    ledger: Ledger

    def link(self) -> None:
        sources, home = self.project.sources, self.jobs.home
        model_fingerprint = model_fingerprint_of(self.project.pipeline("ads"), sources)
        facts = {"model_fingerprint": model_fingerprint, "files": {"checkpoint": put(home)}}
        record(ModelChain(home, "ads"), links.link(FIRST, **facts))

    def submit(self, *, again: bool = False) -> SubmitResult:
        """Whose processes serve."""
        pipeline, home = self.project.pipeline("ads"), self.jobs.home
        window = pipeline.dataset.grid.parse(FIRST)
        target = LineTarget(self.project, pipeline, home, "main").at(window)
        found = submit_window(target, claim="run#1", again=again, previous=PreviousRun.NONE)
        self.jobs.serving(JobHandle(home, found.job_id, found.epoch))
        return found


@pytest.fixture
def windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: ToyJobs) -> Windows:
    monkeypatch.setattr(submit, "SUPERVISOR_ARGUMENTS", TOY_SUPERVISOR)
    projects.declared_project(tmp_path)
    ledger = Ledger(jobs.home, "ads")
    plan_empty(ledger, FIRST)
    return Windows(load_project(tmp_path / "config"), jobs, ledger)


def test_a_person_sees_and_cancels_the_job(windows: Windows) -> None:
    project = projects.Project(windows.project.root, home_folder=windows.jobs.home.root)

    def forebay(*arguments: str) -> str:
        done = project.forebay(*arguments)
        return done.stdout + done.stderr

    job = windows.submit().job_id
    assert f"job {job} is running" in forebay("why", "ads", FIRST)
    assert f"job {job} is cancelled" in forebay("cancel", "ads")
    told = forebay("why", "ads", FIRST)
    assert f"job {job} was cancelled" in told
    assert "clear this window's run in Airflow" in told
    windows.link()
    replanned(windows.ledger, FIRST)
    assert "window 2026-03-01: planned" in forebay("why", "ads", FIRST)


@pytest.mark.guarantee(
    "`forebay stage submit` dies, at any point",
    "nothing; the next call decides the same generation",
)
@pytest.mark.guarantee(
    "whoever submits the job of one window dies, at any point",
    "nothing; one generation, trained once",
)
def test_killed_at_any_point_it_is_one_generation_and_one_training(windows: Windows) -> None:
    windows.link()
    delays = [0.0, 0.002, 0.005, 0.008, 0.012, 0.02, 0.03, 0.05, 0.08, 0.15, 0.3, 0.6, 1.2]
    home = windows.jobs.home
    roots = (str(windows.project.root), str(home.root))
    command = [sys.executable, "-c", KILLED_CALLS, *roots, json.dumps(delays)]
    subprocess.run(command, check=True, timeout=120)
    last = windows.submit(again=True)
    assert (last.state, last.generation) == ("submitted", 2)
    assert windows.ledger.generations(FIRST) == [1, 2]
    assert [path.name for path in home.jobs.iterdir()] == [last.job_id]
    assert len(windows.jobs.starts("trainer-0", last.job_id)) == 1
    supervisors = [
        process
        for process in windows.jobs.processes()
        if "support.toy_roles.supervisor" in process.cmdline()
    ]
    deadline = time.monotonic() + 20  # a second one sees that there is one, and ends
    while len(supervisors) > 1 and time.monotonic() < deadline:
        time.sleep(0.1)
        supervisors = [process for process in supervisors if process.is_running()]
    assert len(supervisors) == 1
