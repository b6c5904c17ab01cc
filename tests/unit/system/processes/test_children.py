"""Children, orphans, and the end of both. Orphans are adopted in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.python_code import printed
from support.toy_roles.jobs import eventually

from forebay.system.processes.children import Children, wait_or_kill

DEAF = "import signal, time; signal.signal(15, 1); print('deaf', flush=True); time.sleep(60)"
# Starts a child that leaves an orphan, and one that ends with code 7 and is polled late.
ADOPTS = """
import os, sys, time
from pathlib import Path
from forebay.system.processes.children import Children, wait_or_kill
from forebay.system.processes.parent import adopt_orphans
from forebay.system.processes.identity import descendants

def until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)

adopt_orphans()
children = Children()
orphan = "(sleep {} & echo $! > {})"
log = open(os.devnull, "wb")
files = [Path(sys.argv[1], name) for name in ("short", "long")]
for path, seconds in zip(files, ("0.1", "600")):
    child = children.start(["sh", "-c", orphan.format(seconds, path)], os.environ, log)
    assert child.wait(20) == 0
short, long = (int(path.read_text()) for path in files)
own = children.start(["sh", "-c", "exit 7"], os.environ, log)
until(lambda: os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT))

def reaped():
    children.reap_orphans()
    return not Path("/proc", str(short)).exists()

until(lambda: "Z" in Path("/proc", str(short), "stat").read_text())
children.reap_orphans()
assert own.poll() == 7  # left to whoever polls it
until(reaped)
assert [one.pid for one in descendants()] == [long]
children.end_orphans()
assert not Path("/proc", str(long)).exists()
print("done")
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def start(children: Children, log: Path, *command: str) -> subprocess.Popen[bytes]:
    with log.open("ab") as stream:
        return children.start(command, {**os.environ, "SEEN": "yes"}, stream, log.parent)


def test_a_child_has_its_environment_folder_and_log_and_may_end_in_time(log: Path) -> None:
    child = start(Children(), log, "sh", "-c", 'echo "$SEEN $PWD"; echo bad >&2; cat; exit 3')
    assert child.wait(20) == 3
    assert log.read_text() == f"yes {log.parent}\nbad\n"
    children = Children()
    child = start(children, log, "true")
    assert (children.unpolled(), child.wait(20), children.unpolled()) == ([child], 0, [])
    child = start(Children(), log, "sleep", "600")
    child.terminate()
    wait_or_kill(child, time.monotonic() + 20, "part")
    assert child.returncode == -signal.SIGTERM


def test_a_deaf_one_is_killed_at_the_deadline(log: Path, caplog: pytest.LogCaptureFixture) -> None:
    child = start(Children(), log, sys.executable, "-c", DEAF)
    eventually(lambda: "deaf" in log.read_text())
    child.terminate()
    began = time.monotonic()
    wait_or_kill(child, began + 0.3, "part")
    assert time.monotonic() - began >= 0.3
    assert child.returncode == -signal.SIGKILL
    assert "part did not end in time: killing it" in caplog.text


def test_orphans_are_adopted_reaped_and_ended(tmp_path: Path) -> None:
    assert printed(ADOPTS, os.environ, str(tmp_path)) == "done\n"
