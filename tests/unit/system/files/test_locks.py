"""Locks between processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from forebay.errors import InfrastructureError
from forebay.system.files.locks import FileLock, is_held, locked

HOLDER = """
import sys, time
from pathlib import Path
from forebay.system.files.locks import FileLock
assert FileLock(Path(sys.argv[1])).acquire(0)
print("held", flush=True)
time.sleep(60)
"""


def test_one_holder_at_a_time(tmp_path: Path) -> None:
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


def test_the_holder_leaves_word(tmp_path: Path) -> None:
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
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
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
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, pass_fds=[descriptor] if passed else [], **pipes)


def said(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline()


def test_a_lock_that_is_left_to_a_child_ends_with_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    lock = FileLock(path)
    assert lock.acquire(0)
    with inherits(path, lock.descriptor) as child:
        lock.leave()
        assert is_held(path), "even before the child knows of it"
        assert said(child) == "held\n"
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
        assert said(child) == "not\n"
        child.communicate("")
