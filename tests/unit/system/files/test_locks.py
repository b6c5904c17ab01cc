"""Locks between processes, and one that is given in order of arrival."""

from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.there import there
from support.toy_roles.jobs import eventually

from forebay.errors import InfrastructureError
from forebay.system.files.locks import FileLock, TurnLock, is_held, locked

TAKES = """
import sys
from pathlib import Path
from forebay.system.files import locks
lock = getattr(locks, sys.argv[2])(Path(sys.argv[1]))
assert lock.acquire(30.0)
print("has it", flush=True)
sys.stdin.read()
lock.release()
"""
PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}


def said(process: subprocess.Popen[str]) -> str:
    return there(process.stdout).readline().strip()


def test_one_holder_at_a_time_who_leaves_word(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not is_held(path)
    first, second = FileLock(path), FileLock(path)
    assert first.acquire(0)
    assert is_held(path)
    assert not second.acquire(0.05)
    first.release()
    first.release()
    assert not is_held(path)
    assert second.acquire(0)
    second.release()
    lock = FileLock(tmp_path / "lock")
    with pytest.raises(RuntimeError, match="only the holder"):
        lock.write("x")
    lock.acquire(0)
    lock.write("a long name")
    lock.write("j1")
    assert (tmp_path / "lock").read_text() == "j1"
    lock.release()


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with subprocess.Popen([sys.executable, "-c", TAKES, str(path), "FileLock"], **PIPES) as holder:
        assert said(holder) == "has it"
        assert is_held(path)
        holder.kill()
        holder.wait(10)
        assert not is_held(path)


def test_locked_gives_up_at_its_deadline(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        locked(path, 0),
        pytest.raises(InfrastructureError, match="has been locked"),
        locked(path, 0.02),
    ):
        pass
    assert not is_held(path)


INHERITS = """
import sys
from pathlib import Path
from forebay.system.files.locks import FileLock
lock = FileLock.inherited(Path(sys.argv[1]), int(sys.argv[2]))
print("held" if lock else "not", flush=True)
sys.stdin.read()
"""


def inherits(path: Path, descriptor: int, *, passed: bool = True) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", INHERITS, str(path), str(descriptor)]
    return subprocess.Popen(command, pass_fds=[descriptor] if passed else [], **PIPES)


def test_a_lock_that_is_left_to_a_child_ends_with_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = FileLock(path)
    assert lock.acquire(0)
    with inherits(path, lock.descriptor) as child:
        lock.leave()
        assert is_held(path), "even before the child knows of it"
        assert said(child) == "held"
        assert is_held(path)
        child.kill()
        child.wait(10)
        assert not is_held(path)
    with pytest.raises(RuntimeError, match="only the holder"):
        lock.leave()


@pytest.mark.parametrize("passed", [True, False])
def test_what_is_no_lock_is_not_inherited(tmp_path: Path, passed: bool) -> None:
    path = tmp_path / "lock"
    path.touch()
    with (
        (tmp_path / "other").open("w") as other,
        inherits(path, other.fileno(), passed=passed) as child,
    ):
        assert said(child) == "not"
        child.communicate("")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.lock"


@contextmanager
def another(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that stands in line, and keeps the lock until its input ends."""
    command = [sys.executable, "-c", TAKES, str(path), "TurnLock"]
    number = last_number(path)
    with subprocess.Popen(command, **PIPES) as process:
        try:
            eventually(lambda: last_number(path) != number)
            yield process
        finally:
            process.kill()


def last_number(path: Path) -> int:
    return int.from_bytes(path.read_bytes()[:6], "little") if path.exists() else 0


def ends(process: subprocess.Popen[str]) -> None:
    there(process.stdin).close()
    assert process.wait(10) == 0


def is_free(path: Path) -> bool:
    lock = TurnLock(path)
    free = lock.acquire(0)
    lock.release()
    return free


def test_whoever_came_first_is_next(path: Path) -> None:
    order, first = list[int](), TurnLock(path)
    assert first.acquire(1.0)

    def take(number: int) -> None:
        lock = TurnLock(path)
        assert lock.acquire(10.0)
        order.append(number)
        lock.release()

    waiting = []
    for number in range(5):
        waiting.append(threading.Thread(target=take, args=(number,)))
        waiting[-1].start()
        time.sleep(0.05)
    first.release()
    for each in waiting:
        each.join(10)
    assert order == [0, 1, 2, 3, 4]


def test_nobody_overtakes_one_that_gets_no_processor(path: Path) -> None:
    holder, late = TurnLock(path), TurnLock(path)
    assert holder.acquire(0)
    with another(path) as slow:
        slow.send_signal(signal.SIGSTOP)
        holder.release()
        assert not late.acquire(0.3)
        slow.send_signal(signal.SIGCONT)
        assert said(slow) == "has it"
        ends(slow)
    assert late.acquire(1.0)
    late.release()


@pytest.mark.parametrize("kept", [True, False])
def test_who_is_killed_holds_up_nobody(path: Path, kept: bool) -> None:
    holder = TurnLock(path)
    assert kept or holder.acquire(0)
    with another(path) as dead, another(path) as behind:
        if kept:
            assert said(dead) == "has it"
        dead.kill()
        dead.wait(10)
        holder.release()
        assert said(behind) == "has it"
        ends(behind)
    assert is_free(path)


def test_a_turn_that_comes_too_late_is_given_on(path: Path) -> None:
    holder, late = TurnLock(path), TurnLock(path)
    assert holder.acquire(0)
    assert not late.acquire(0.05)
    with another(path) as behind:
        holder.release()
        assert said(behind) == "has it"
        ends(behind)
    late.release()
    assert is_free(path)


def test_whoever_is_interrupted_leaves_the_line(path: Path) -> None:
    holder = TurnLock(path)
    assert holder.acquire(0)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(KeyboardInterrupt):
            TurnLock(path).acquire(10.0)
    finally:
        signal.signal(signal.SIGALRM, before)
    holder.release()
    assert is_free(path)


def counts(path: Path, count: Path) -> None:
    for _ in range(50):
        lock = TurnLock(path)
        assert lock.acquire(30.0)
        count.write_text(str(int(count.read_text()) + 1))
        lock.release()


def test_processes_and_threads_exclude_each_other(path: Path, tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("0")
    forked = multiprocessing.get_context("fork")
    processes = [forked.Process(target=counts, args=(path, count)) for _ in range(3)]
    for each in processes:
        each.start()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: counts(path, count), range(4)))
    for each in processes:
        each.join(60)
        assert each.exitcode == 0
        each.close()
    assert count.read_text() == "350"


@pytest.mark.parametrize("waits", [True, False])
def test_a_full_disk_is_told_and_holds_up_nobody(
    path: Path, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    holder = TurnLock(path)
    assert holder.acquire(0)
    number = os.open(path, os.O_RDWR)
    if waits:  # somebody takes a number at this moment
        lock_number(number, fcntl.F_WRLCK)
        threading.Timer(0.2, lock_number, (number, fcntl.F_UNLCK)).start()
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space"):
            TurnLock(path).acquire(5.0)
    os.close(number)
    holder.release()
    assert is_free(path)


def test_without_locks_of_open_files_it_excludes_in_no_order(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "fcntl", unknown)
    holder, late = TurnLock(path), TurnLock(path)
    assert holder.acquire(0)
    assert not late.acquire(0.05)
    threading.Timer(0.1, holder.release).start()
    assert late.acquire(5.0)
    assert not is_free(path)
    late.release()
    eventually(lambda: is_free(path))  # a turn that came too late may come only now


@pytest.mark.parametrize("content", [b"", b"{", b"\xff" * 6, b"not a number at all"])
def test_whatever_the_file_holds(path: Path, content: bytes) -> None:
    if content:
        path.write_bytes(content)
    first, second = TurnLock(path), TurnLock(path)
    for _ in range(2):
        assert first.acquire(0)
        assert not second.acquire(0.05)
        second.release()
        assert not is_free(path)
        first.release()
        first.release()
        assert second.acquire(0)
        second.release()
    assert content or path.stat().st_mode & 0o777 == 0o600


def lock_number(descriptor: int, kind: int) -> None:
    asked = struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 1, 0)
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, asked)


def full(*_: Any) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def unknown(*_: Any) -> int:
    raise OSError(errno.EINVAL, "Invalid argument")
