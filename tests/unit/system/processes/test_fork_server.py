"""Calls that a process forks for which has imported the program."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from support.there import eventually

from forebay.errors import InfrastructureError
from forebay.system.files.private_socket import connected
from forebay.system.processes.fork_server import ForkedProcess

PROGRAM = """
import os, subprocess, sys, time
from pathlib import Path
from forebay.system.processes.fork_server import serve

imported = []

def run(arguments):
    what, *rest = arguments
    if what == "exit":
        sys.exit(int(rest[0]))
    if what == "raise":
        raise ValueError("as asked")
    if what == "sleep":
        child = subprocess.Popen(["sleep", "60"])
        print(child.pid, flush=True)
        time.sleep(60)
    if what == "remember":
        imported.append(1)
        os.environ["REMEMBERED"] = "1"
        print(len(imported), os.environ.get("SET"), os.getcwd(), os.getsid(0) == os.getpid())
    print("also", file=sys.stderr)
    return 3

serve(Path(sys.argv[1]), run, float(sys.argv[2]))
"""


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    started = []

    def start(folder: Path, idle_seconds: float = 60) -> subprocess.Popen[bytes]:
        server = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(folder), str(idle_seconds)],
            env={**os.environ, "SET": "yes"},
            stderr=subprocess.DEVNULL,
        )
        started.append(server)
        return server

    yield start
    for each in started:
        each.kill()
        each.wait()


def listens(folder: Path) -> bool:
    try:
        connected(folder, 1).close()
    except OSError:
        return False
    return True


@pytest.fixture
def folder(serve: Callable[..., subprocess.Popen[bytes]], tmp_path: Path) -> Path:
    made = tmp_path / "x" / ("deep" * 40)  # deeper than the path of a socket may be
    serve(made)
    eventually(lambda: listens(made), 20)
    return made


def begun(folder: Path, *arguments: str) -> tuple[ForkedProcess, int, int]:
    """With what it prints, and says."""
    (out, printed), (errors, said) = os.pipe(), os.pipe()
    try:
        return ForkedProcess.start(folder, arguments, printed, said), out, errors
    finally:
        os.close(printed)
        os.close(said)


def called(folder: Path, *arguments: str) -> tuple[int, str, str]:
    process, out, errors = begun(folder, *arguments)
    with closing(process), os.fdopen(out) as printed, os.fdopen(errors) as said:
        return process.wait(20), printed.read(), said.read()


def test_each_call_has_the_callers_streams_and_folder_and_nothing_of_another(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        code, printed, said = called(folder, "remember")
        assert (code, printed, said) == (3, f"1 yes {tmp_path / name} True\n", "also\n")


def test_codes_and_errors(folder: Path) -> None:
    assert called(folder, "exit", "70")[0] == 70
    code, _, said = called(folder, "raise")
    assert code == 1
    assert "ValueError: as asked" in said


def test_many_at_once(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda number: called(folder, "exit", str(number)), range(40)))
    assert [code for code, _, _ in found] == list(range(40))


def test_one_that_does_not_end_is_waited_for_and_ended_with_its_children(folder: Path) -> None:
    process, out, errors = begun(folder, "sleep")
    with closing(process), os.fdopen(out) as printed, os.fdopen(errors):
        child = int(printed.readline())
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)
        assert process.poll() is None
        process.terminate_group()
        assert process.wait(10) == -signal.SIGTERM
        assert process.poll() == -signal.SIGTERM
    eventually(lambda: not psutil.pid_exists(child))


def test_it_ends_when_its_caller_is_gone(folder: Path) -> None:
    process, out, errors = begun(folder, "sleep")
    with os.fdopen(out) as printed, os.fdopen(errors):
        child = int(printed.readline())
        process.close()
        eventually(lambda: not psutil.pid_exists(child) and not psutil.pid_exists(process.pid))
    assert called(folder, "exit", "5")[0] == 5


def test_callers_that_leave_as_their_processes_end_do_not_end_the_server(folder: Path) -> None:
    for number in range(300):
        process, out, errors = begun(folder, "exit", "0")
        if number % 2:
            process.wait(20)
        process.close()
        os.close(out)
        os.close(errors)
    assert called(folder, "exit", "5")[0] == 5


def test_it_ends_with_the_server_and_the_caller_is_told(
    serve: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    server = serve(tmp_path / "s")
    eventually(lambda: listens(tmp_path / "s"), 20)
    process, out, errors = begun(tmp_path / "s", "sleep")
    with closing(process), os.fdopen(out) as printed, os.fdopen(errors):
        printed.readline()
        server.kill()
        assert process.wait(10) == -signal.SIGKILL
        eventually(lambda: not psutil.pid_exists(process.pid))
    server.wait()
    with pytest.raises(OSError, match=r"refused|No such file"):
        begun(tmp_path / "s", "exit", "0")
    serve(tmp_path / "s")  # the next one takes its place
    eventually(lambda: listens(tmp_path / "s"), 20)
    assert called(tmp_path / "s", "exit", "4")[0] == 4


def test_there_is_one_in_a_folder_until_it_is_idle_or_the_folder_is_gone(
    serve: Callable[..., subprocess.Popen[bytes]], folder: Path, tmp_path: Path
) -> None:
    assert serve(folder).wait(20) == 0
    assert called(folder, "exit", "5")[0] == 5
    idle = serve(tmp_path / "idle", 0.1)
    assert idle.wait(20) == 0
    assert not (tmp_path / "idle").exists()
    removed = serve(tmp_path / "removed")
    eventually(lambda: listens(tmp_path / "removed"), 20)
    shutil.rmtree(tmp_path / "removed")
    assert removed.wait(20) == 0


@pytest.mark.parametrize("content", [b"hello", b"\xff" * 70_000, b'{"arguments": 1}'])
@pytest.mark.parametrize("descriptors", [[], [1], [1, 2]])
def test_garbage_is_no_call(folder: Path, content: bytes, descriptors: list[int]) -> None:
    with closing(connected(folder, 10)) as there:
        socket.send_fds(there, [content], descriptors)
        assert there.recv(10) == b""
    assert called(folder, "exit", "5")[0] == 5


def test_a_folder_that_is_open_to_others_is_refused(folder: Path) -> None:
    folder.chmod(0o755)
    with pytest.raises(InfrastructureError, match=r"only user .* may enter"):
        begun(folder, "exit", "0")
