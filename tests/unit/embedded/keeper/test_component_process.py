"""Components as processes: small commands in place of Airflow's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.there import there
from support.toy_roles.jobs import eventually

from forebay.embedded.airflow.cluster import Embedded
from forebay.embedded.airflow.components import Component
from forebay.embedded.airflow.jobs import cancel_jobs, left_processes
from forebay.embedded.airflow.settings import COMPONENT_NAME, component_environment
from forebay.embedded.keeper.component_group import COMPONENT_POLICY, ComponentGroup
from forebay.embedded.keeper.component_process import ComponentProcess
from forebay.embedded.layout import Layout
from forebay.home.paths import Home
from forebay.system.processes.identity import ProcessIdentity, kill_all
from forebay.system.processes.parent import JOB_ID_NAME
from forebay.system.processes.supervision import RestartPolicy

PATIENCE_SECONDS = 20.0
SLEEP = ("/bin/sleep", "600")


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


# A process that leaves another one behind when it is killed.
PARENT = python(f"import subprocess, time; subprocess.Popen({SLEEP!r}); time.sleep(600)")
DEAF = python("""import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True)
time.sleep(600)""")


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    layout = Layout(Home(tmp_path))
    layout.create()
    yield layout
    kill_all(left_processes(layout))


@pytest.fixture
def group(layout: Layout) -> Iterator[ComponentGroup]:
    group = ComponentGroup(layout)
    yield group
    group.stop(("part", "other"), 0.0)


@pytest.mark.guarantee(
    "a part of Airflow (scheduler, triggerer, DAG processor, API server) hangs",
    "nothing; it stays so until somebody kills it, then as if it had died",
)
@pytest.mark.parametrize("hangs", [False, True])
def test_one_that_is_killed_comes_back_once_what_it_left_behind_is_ended(
    group: ComponentGroup, layout: Layout, *, hangs: bool
) -> None:
    """LocalExecutor's workers live for ever when their scheduler is killed."""
    process = group.start(Component("part", PARENT))
    eventually(lambda: len(left_processes(layout)) == 2)
    before = left_processes(layout)
    if hangs:
        os.kill(there(process.pid), signal.SIGSTOP)
        assert group.tick() == []
    os.kill(there(process.pid), signal.SIGKILL)
    eventually(lambda: group.tick() == ["part"])
    assert not any(process.alive() for process in before)
    assert process.pid not in {None, *(each.pid for each in before)}
    assert (process.status.state, process.status.restarts) == ("running", 1)


def test_restarts_come_at_once_then_later_and_after_eight_ends_in_ten_minutes_never(
    layout: Layout,
) -> None:
    found = [COMPONENT_POLICY.decide(ends, 1) for ends in range(9)]
    delays = [each.delay_seconds for each in found[:-1]]
    assert delays == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0]
    assert (found[-1].action, COMPONENT_POLICY.memory_seconds) == ("fail", 600.0)
    assert {COMPONENT_POLICY.decide(0, code).action for code in (0, 1, 3, -9, None)} == {"restart"}
    group = ComponentGroup(layout, at_once(restarts_max=2))
    process = group.start(Component("part", ("/bin/false",)))
    eventually(lambda: group.tick() is not None and group.given_up())
    assert (process.status.state, process.status.restarts, process.pid) == ("failed", 2, None)


def test_one_that_cannot_be_started_is_tried_again(layout: Layout) -> None:
    memory = True

    def starter(component: Component) -> subprocess.Popen[bytes]:
        if not memory:
            raise OSError(12, "Cannot allocate memory")
        return subprocess.Popen(component.command)

    component = Component("part", ("/bin/true",))
    process = ComponentProcess(component, layout, starter, at_once(restarts_max=1000))
    process.start()
    memory = False
    eventually(lambda: not process.tick() and process.status.restarts > 1)
    assert (process.status.state, process.pid) == ("restarting", None)
    memory = True
    eventually(process.tick)
    process.wait_stopped(time.monotonic() + PATIENCE_SECONDS)


def at_once(restarts_max: int) -> RestartPolicy:
    return RestartPolicy("always", restarts_max, delay_first_seconds=0.0, delay_max_seconds=0.0)


def test_a_deaf_component_is_killed_at_the_deadline(group: ComponentGroup, layout: Layout) -> None:
    process = group.start(Component("part", DEAF))
    eventually(lambda: b"deaf" in layout.log("part").read_bytes())
    pid, began = process.pid, time.monotonic()
    group.stop(("part",), 0.5)
    assert 0.5 <= time.monotonic() - began < PATIENCE_SECONDS
    assert not Path(f"/proc/{pid}").exists()
    assert (group.tick(), process.status.state) == ([], "stopped")


def test_work_below_is_ended_first_where_a_component_waits_for_it(
    group: ComponentGroup, layout: Layout
) -> None:
    group.start(Component("part", PARENT, waits_for_work=True))
    eventually(lambda: len(left_processes(layout)) == 2)
    group.stop(("part",), PATIENCE_SECONDS)
    assert left_processes(layout) == []


def test_a_failure_names_the_log_and_its_last_line(group: ComponentGroup, layout: Layout) -> None:
    group.start(Component("part", ("/bin/echo", "no space left")))
    eventually(lambda: layout.log("part").stat().st_size)
    text = str(group.failure("part", "is not ready"))
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
        f"group = ComponentGroup(Layout(Home(Path({str(layout.home.root)!r}))));"
        f"process = group.start(Component('part', {SLEEP!r}));"
        "print(process.pid, flush=True); time.sleep(600)"
    )
    keeper = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env=component_environment(layout, "keeper"),
    )
    output = there(keeper.stdout)
    pid = int(output.readline())
    eventually(lambda: Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"/bin/sleep"))
    part = there(ProcessIdentity.of(pid))
    keeper.kill()
    keeper.wait()
    output.close()
    eventually(lambda: not part.alive())


def test_what_runs_for_a_deleted_home_is_ended(tmp_path: Path) -> None:
    embedded = Embedded(Home(tmp_path / "deleted"))
    left = subprocess.Popen(SLEEP, env=component_environment(embedded.layout, "scheduler"))
    eventually(lambda: left_processes(embedded.layout))
    assert (embedded.stop(), left.wait(PATIENCE_SECONDS)) == ([], -signal.SIGKILL)
    assert not embedded.layout.root.exists()


def test_a_keeper_that_does_not_end_is_killed(layout: Layout) -> None:
    keeper = subprocess.Popen(DEAF, env=component_environment(layout, "keeper"))
    eventually(lambda: b"SIG_IGN" in Path(f"/proc/{keeper.pid}/cmdline").read_bytes())
    Embedded(layout.home).stop(timeout_seconds=1.0)
    assert keeper.wait(PATIENCE_SECONDS) in {-signal.SIGKILL, -signal.SIGTERM}


def test_jobs_are_no_part_of_it_but_end_when_it_is_told(layout: Layout) -> None:
    environment = {
        **component_environment(layout, "scheduler"),
        JOB_ID_NAME: "ads.main.2026-03-01.g1",
    }
    job = subprocess.Popen(SLEEP, env=environment, start_new_session=True)
    eventually(lambda: Path(f"/proc/{job.pid}/cmdline").read_bytes().startswith(b"/bin/sleep"))
    assert left_processes(layout, **{COMPONENT_NAME: "scheduler"}) == []
    assert cancel_jobs(layout) == ["ads.main.2026-03-01.g1"]
    assert (job.wait(PATIENCE_SECONDS), cancel_jobs(layout)) == (-signal.SIGKILL, [])
