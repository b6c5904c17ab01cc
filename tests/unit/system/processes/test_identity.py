"""Identity, end with the parent, sweeps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.there import there
from support.toy_roles.jobs import eventually

from forebay.errors import InfrastructureError
from forebay.home.runtime import processes_of_job
from forebay.system.processes.identity import ProcessIdentity, kill_all

ROLE = """
import sys, time
from pathlib import Path
from forebay.executors.link.local import LocalLink
from forebay.executors.role import start_role
start_role(LocalLink(Path(sys.argv[1]), "data", 3))
print("up", flush=True)
time.sleep(60)
"""
PARENT = """
import os, subprocess, sys
env = {**os.environ, "FOREBAY_PARENT_PID": str(os.getpid())}
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[2]], env=env)
print(child.pid, flush=True)
child.wait()
"""


# The first thread ends by itself (the system call exit, which ends one thread).
FIRST_ENDS = """
import ctypes, os, sys, threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("up", flush=True)
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
"""


def sleeper(environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"], env=environment)


def identity_of(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    return there(ProcessIdentity.of(process.pid))


def test_an_identity_ends_with_its_process_and_a_reused_pid_is_not_hit() -> None:
    with sleeper() as process:
        identity = identity_of(process)
        assert identity.alive()
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert not identity.alive()  # still a zombie
    assert not identity.alive()
    assert not identity.signal(signal.SIGKILL)
    assert ProcessIdentity.of(process.pid) is None
    with sleeper() as process:
        identity = identity_of(process)
        earlier = ProcessIdentity(pid=identity.pid, create_time=identity.create_time - 1)
        assert not earlier.alive()
        assert not earlier.signal(signal.SIGKILL)
        assert process.poll() is None
        assert identity.signal(signal.SIGTERM)
        assert process.wait(10) == -signal.SIGTERM


def test_a_process_lives_until_its_last_thread_has_ended() -> None:
    command = [sys.executable, "-c", FIRST_ENDS]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        identity = identity_of(process)
        state = Path(f"/proc/{process.pid}/stat")
        eventually(lambda: ") Z " in state.read_text())
        assert identity.alive()
        kill_all([identity])
        assert process.wait(10) == -signal.SIGKILL
        assert not identity.alive()


def test_a_name_with_brackets_and_blanks(tmp_path: Path) -> None:
    program = tmp_path / ") S 1 ("
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "60"]) as process:
        identity = identity_of(process)
        assert identity.alive()
        kill_all([identity])


def test_processes_of_job_wants_id_and_home(tmp_path: Path) -> None:
    marks = {"FOREBAY_JOB_ID": "j1", "FOREBAY_HOME": str(tmp_path)}
    ours = sleeper(marks)
    others = [sleeper({**marks, name: "other"}) for name in sorted(marks)]
    try:
        eventually(lambda: processes_of_job("j1", tmp_path))  # between fork and exec
        found = processes_of_job("j1", tmp_path)
        assert [identity.pid for identity in found] == [ours.pid]
        kill_all(found)
        assert all(process.poll() is None for process in others)
    finally:
        for process in [ours, *others]:
            process.kill()
            process.wait()


def test_those_above_are_not_swept(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from forebay.home.runtime import processes_of_job\n"
        "print(processes_of_job('j1', Path(sys.argv[1])))"
    )
    environment = {**os.environ, "FOREBAY_JOB_ID": "j1", "FOREBAY_HOME": str(tmp_path)}
    shell = ["sh", "-c", '"$0" -c "$1" "$2"; true', sys.executable, script, str(tmp_path)]
    result = subprocess.run(shell, env=environment, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_role_ends_with_its_parent(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, ROLE, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as parent:
        output = there(parent.stdout)
        child = there(ProcessIdentity.of(int(output.readline())))
        assert output.readline() == "up\n"
        parent.kill()
        eventually(lambda: not child.alive())


def test_a_role_whose_parent_is_gone_does_not_start(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ROLE, str(tmp_path)]
    gone = {**os.environ, "FOREBAY_PARENT_PID": "1073741824"}
    result = subprocess.run(command, env=gone, capture_output=True, text=True, check=False)
    assert result.returncode == InfrastructureError.exit_code
    assert "data-3" in result.stderr
    assert "the supervisor ended" in result.stderr


class Deaf(ProcessIdentity):
    def signal(self, number: signal.Signals) -> bool:
        return True


def test_kill_all_has_a_deadline() -> None:
    with sleeper() as process:
        deaf = Deaf(**identity_of(process).model_dump())
        with pytest.raises(InfrastructureError, match=r"still running .* after SIGKILL"):
            kill_all([deaf], wait_seconds=0.05)
        process.kill()
