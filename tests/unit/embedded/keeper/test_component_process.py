"""Components as processes: small commands in the part of Airflow's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forebay.embedded.airflow.cluster import Embedded
from forebay.embedded.airflow.components import Component
from forebay.embedded.airflow.jobs import cancel_jobs, left_processes
from forebay.embedded.airflow.settings import COMPONENT_NAME, component_environment
from forebay.embedded.keeper import component_process as members_module
from forebay.embedded.keeper.component_group import ComponentGroup
from forebay.embedded.layout import Layout
from forebay.home.paths import Home
from forebay.system.parent import JOB_ID_NAME
from forebay.system.processes import ProcessIdentity, kill_all

PATIENCE_SECONDS = 20.0
SLEEP = ("/bin/sleep", "600")
# A process that leaves another one behind when it is killed.
PARENT = (
    sys.executable,
    "-c",
    "import subprocess, time; subprocess.Popen(['/bin/sleep', '600']); time.sleep(600)",
)
DEAF = (
    sys.executable,
    "-c",
    """import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True)
time.sleep(600)""",
)


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    layout = Layout(Home(tmp_path))
    layout.create()
    yield layout
    kill_all(left_processes(layout))


@pytest.fixture
def crew(layout: Layout) -> Iterator[ComponentGroup]:
    crew = ComponentGroup(layout)
    yield crew
    crew.stop(("part", "other"), 0.0)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def states(crew: ComponentGroup) -> dict[str, str]:
    return {one.component.name: one.status.state for one in crew._members.values()}


def test_a_component_that_is_killed_comes_back(crew: ComponentGroup) -> None:
    member = crew.start(Component("part", SLEEP))
    first = member.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    until(lambda: crew.tick() == ["part"])
    assert member.pid not in {None, first}
    assert (member.status.state, member.status.restarts) == ("running", 1)


def test_what_it_left_behind_is_ended_before(crew: ComponentGroup, layout: Layout) -> None:
    """LocalExecutor's workers live for ever when their scheduler is killed."""
    member = crew.start(Component("part", PARENT))
    until(lambda: len(left_processes(layout)) == 2)
    before = left_processes(layout)
    assert member.pid is not None
    os.kill(member.pid, signal.SIGKILL)
    until(lambda: crew.tick() == ["part"])
    assert not any(process.alive() for process in before)


def test_one_that_ends_again_and_again_is_given_up(
    crew: ComponentGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        members_module, "restart_delay", lambda ends, _now: 0.0 if len(ends) < 3 else None
    )
    member = crew.start(Component("part", ("/bin/false",)))
    until(lambda: crew.tick() is not None and crew.given_up())
    assert (member.status.state, member.status.restarts, member.pid) == ("failed", 2, None)


def test_one_that_cannot_be_started_is_tried_again(
    crew: ComponentGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members_module, "restart_delay", lambda _ends, _now: 0.0)
    member = crew.start(Component("part", ("/bin/true",)))
    starter, member._starter = member._starter, no_memory
    until(lambda: crew.tick() == [] and member.status.restarts > 1)
    assert member.status.state == "restarting"
    member._starter = starter
    until(lambda: crew.tick() == ["part"])


def no_memory(_: Component) -> subprocess.Popen[bytes]:
    raise OSError(12, "Cannot allocate memory")


def test_a_deaf_component_is_killed_at_the_deadline(crew: ComponentGroup, layout: Layout) -> None:
    member = crew.start(Component("part", DEAF))
    until(lambda: b"deaf" in layout.log("part").read_bytes())
    pid = member.pid
    assert pid is not None
    began = time.monotonic()
    crew.stop(("part",), 0.5)
    assert 0.5 <= time.monotonic() - began < PATIENCE_SECONDS
    assert not Path(f"/proc/{pid}").exists()
    assert states(crew) == {"part": "stopped"}


def test_work_below_is_ended_first_where_a_component_waits_for_it(
    crew: ComponentGroup, layout: Layout
) -> None:
    crew.start(Component("part", PARENT, waits_for_work=True))
    until(lambda: len(left_processes(layout)) == 2)
    crew.stop(("part",), PATIENCE_SECONDS)
    assert left_processes(layout) == []


def test_a_stopped_component_stays_down(crew: ComponentGroup) -> None:
    crew.start(Component("part", SLEEP))
    crew.stop(("part",), PATIENCE_SECONDS)
    assert crew.tick() == []
    assert states(crew) == {"part": "stopped"}


def test_a_failure_names_the_log_and_its_last_line(crew: ComponentGroup, layout: Layout) -> None:
    crew.start(Component("part", ("/bin/echo", "no space left")))
    until(lambda: layout.log("part").stat().st_size)
    text = str(crew.failure("part", "is not ready"))
    assert str(layout.log("part")) in text
    assert text.endswith("its last line: no space left")


def test_a_component_ends_with_its_keeper(layout: Layout) -> None:
    """The keeper is killed: the kernel ends what it started."""
    code = (
        "import os, signal, sys, time; from pathlib import Path;"
        "from forebay.embedded.airflow.components import Component;"
        "from forebay.embedded.keeper.component_group import ComponentGroup;"
        "from forebay.embedded.layout import Layout;"
        "from forebay.home.paths import Home;"
        f"crew = ComponentGroup(Layout(Home(Path({str(layout.home.root)!r}))));"
        f"member = crew.start(Component('part', {SLEEP!r}));"
        "print(member.pid, flush=True); time.sleep(600)"
    )
    keeper = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env=component_environment(layout, "keeper"),
    )
    assert keeper.stdout is not None
    pid = int(keeper.stdout.readline())
    until(lambda: Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"/bin/sleep"))
    part = ProcessIdentity.of(pid)
    assert part is not None
    keeper.kill()
    keeper.wait()
    keeper.stdout.close()
    until(lambda: not part.alive())


def test_what_runs_for_a_deleted_home_is_ended(tmp_path: Path) -> None:
    embedded = Embedded(Home(tmp_path / "deleted"))
    left = subprocess.Popen(SLEEP, env=component_environment(embedded.layout, "scheduler"))
    until(lambda: left_processes(embedded.layout))
    assert embedded.stop() == []
    assert left.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    assert not embedded.layout.root.exists()


def test_a_keeper_that_does_not_end_is_killed(layout: Layout) -> None:
    keeper = subprocess.Popen(DEAF, env=component_environment(layout, "keeper"))
    until(lambda: b"SIG_IGN" in Path(f"/proc/{keeper.pid}/cmdline").read_bytes())
    Embedded(layout.home).stop(timeout_seconds=1.0)
    assert keeper.wait(PATIENCE_SECONDS) in {-signal.SIGKILL, -signal.SIGTERM}


def test_jobs_are_no_part_of_it_but_end_when_it_is_told(layout: Layout) -> None:
    environment = {
        **component_environment(layout, "scheduler"),
        JOB_ID_NAME: "ads-main-2026-03-01-g1",
    }
    job = subprocess.Popen(SLEEP, env=environment, start_new_session=True)
    until(lambda: Path(f"/proc/{job.pid}/cmdline").read_bytes().startswith(b"/bin/sleep"))
    assert left_processes(layout, **{COMPONENT_NAME: "scheduler"}) == []
    assert cancel_jobs(layout) == ["ads-main-2026-03-01-g1"]
    assert job.wait(PATIENCE_SECONDS) == -signal.SIGKILL
    assert cancel_jobs(layout) == []
