"""Submitting the job of one window: one generation, one training, whatever dies at any time."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import links
from support.model_lines import plan_empty, put, record
from support.projects import Project as ToyProject
from support.projects import ads_pipeline, clicks_source, history_source
from support.stages import replanned
from support.toy_roles.jobs import ToyJobs

from forebay.config.load import Project, load_project
from forebay.config.specs.pipelines import PipelineSpec
from forebay.datatasks.plans.ledger import Ledger
from forebay.errors import LineBusyError
from forebay.executors.job.handle import JobHandle
from forebay.executors.model_line.chain import ModelChain
from forebay.executors.model_line.lease import LEASE_NAME
from forebay.executors.model_line.model_fingerprint import model_fingerprint_of
from forebay.executors.stages import submit
from forebay.executors.stages.claims import Claims
from forebay.executors.stages.results import SubmitResult
from forebay.executors.stages.submit import submit_window
from forebay.executors.stages.target import LineTarget
from forebay.executors.stages.turn import PreviousRun
from forebay.home.paths import Home
from forebay.system.files.locks import FileLock

FIRST, SECOND = "2026-03-01", "2026-03-02"
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


@dataclass
class Windows:
    """Windows of a toy pipeline, and toy roles that train them."""

    project: Project
    home: Home
    jobs: ToyJobs

    @property
    def pipeline(self) -> PipelineSpec:
        return self.project.pipeline("ads")

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.home, "ads")

    def plan(self, key: str, generation: int = 1) -> None:
        plan_empty(self.ledger, key, generation)

    def link(self, key: str) -> None:
        model_fingerprint = model_fingerprint_of(self.pipeline, self.project.sources)
        facts = {"model_fingerprint": model_fingerprint, "files": {"checkpoint": put(self.home)}}
        record(ModelChain(self.home, "ads"), links.link(key, **facts))

    def submit(
        self,
        key: str = FIRST,
        claim: str = "run#0",
        *,
        again: bool = False,
        previous: PreviousRun = PreviousRun.NONE,
    ) -> SubmitResult:
        target = LineTarget(self.project, self.pipeline, self.home, "main").at(
            self.pipeline.dataset.grid.parse(key)
        )
        return submit_window(target, claim=claim, again=again, previous=previous)

    def handle(self, result: SubmitResult) -> JobHandle:
        return JobHandle(self.home, result.job_id, result.epoch)


@pytest.fixture
def windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: ToyJobs) -> Windows:
    monkeypatch.setattr(submit, "SUPERVISOR_ARGUMENTS", TOY_SUPERVISOR)
    written = ToyProject(tmp_path, ads_pipeline())
    written.write_source("history", history_source())
    written.write_source("clicks", clicks_source())
    written.write_pipeline()
    return Windows(load_project(tmp_path / "config"), jobs.home, jobs)


def test_a_person_sees_and_cancels_the_job(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(windows.project.root)
    monkeypatch.setenv("FOREBAY_HOME", str(windows.home.root))

    def forebay(*arguments: str) -> str:
        command = [sys.executable, "-m", "forebay", *arguments]
        done = subprocess.run(command, check=True, timeout=60, capture_output=True, text=True)
        return done.stdout + done.stderr

    windows.plan(FIRST)
    one = windows.submit()
    windows.jobs.serving(windows.handle(one))
    assert f"job {one.job_id} is running" in forebay("why", "ads", FIRST)
    assert f"job {one.job_id} is cancelled" in forebay("cancel", "ads")
    told = forebay("why", "ads", FIRST)
    assert f"job {one.job_id} was cancelled" in told
    assert "clear this window's run in Airflow" in told
    windows.link(FIRST)
    replanned(windows.ledger, FIRST)
    assert "window 2026-03-01: planned" in forebay("why", "ads", FIRST)


def test_a_forgotten_window_starts_anew(windows: Windows) -> None:
    windows.plan(FIRST)
    windows.link(FIRST)
    assert windows.submit().state == "trained"
    windows.ledger.forget(FIRST)
    assert Claims(windows.ledger, FIRST).generation("run#0") is None
    windows.plan(FIRST, windows.ledger.state(FIRST).next_generation)
    anew = windows.submit()
    assert (anew.state, anew.generation) == ("submitted", 2)


def test_a_busy_line_is_waited_for_by_name(windows: Windows) -> None:
    windows.plan(FIRST)
    windows.plan(SECOND)
    one = windows.submit()
    windows.jobs.serving(windows.handle(one))
    windows.link(FIRST)  # as if another line's job had it: only the lease tells now
    waits = windows.submit(SECOND, previous=PreviousRun.DONE)
    assert waits.state == "waiting"
    assert one.job_id in waits.reason
    windows.handle(one).cancel()
    windows.handle(one).wait(20)
    assert windows.submit(SECOND, previous=PreviousRun.DONE).state == "submitted"


def test_a_line_taken_between_look_and_start_is_waited_for_too(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows.plan(FIRST)
    line = windows.home.line("ads")
    line.mkdir(parents=True)
    lease = FileLock(line / LEASE_NAME)
    assert lease.acquire(1)
    lease.write("forebay-run-by-hand")
    monkeypatch.setattr(submit, "living_holder", lambda *_: "")
    waits = windows.submit()
    assert waits.state == "waiting"
    assert "forebay-run-by-hand" in waits.reason
    failed = windows.handle(
        SubmitResult(state="waiting", window=FIRST, job_id=f"ads.main.{FIRST}.g1")
    )
    error = failed.status().error
    assert error is not None
    assert isinstance(error.exception(), LineBusyError)
    lease.release()
    assert windows.submit().state == "submitted"
    assert windows.ledger.generations(FIRST) == [1]


@pytest.mark.guarantee(
    "`forebay stage submit` dies, at any point",
    "nothing; the next call decides the same generation",
)
@pytest.mark.guarantee(
    "whoever submits the job of one window dies, at any point",
    "nothing; one generation, trained once",
)
def test_killed_at_any_point_it_is_one_generation_and_one_training(windows: Windows) -> None:
    windows.plan(FIRST)
    windows.link(FIRST)
    delays = [0.0, 0.002, 0.005, 0.008, 0.012, 0.02, 0.03, 0.05, 0.08, 0.15, 0.3, 0.6, 1.2]
    root, home = str(windows.project.root), str(windows.home.root)
    subprocess.run(
        [sys.executable, "-c", KILLED_CALLS, root, home, json.dumps(delays)],
        check=True,
        timeout=120,
    )
    last = windows.submit(claim="run#1", again=True)
    assert (last.state, last.generation) == ("submitted", 2)
    windows.jobs.serving(windows.handle(last))
    assert windows.ledger.generations(FIRST) == [1, 2]
    assert [path.name for path in windows.home.job("any").parent.iterdir()] == [last.job_id]
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
