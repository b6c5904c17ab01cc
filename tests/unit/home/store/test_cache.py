"""Local copies of an object store: fetched once, bounded, never partial."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest
from support.toy_roles.jobs import eventually

from forebay.errors import DataError, InfrastructureError
from forebay.home.store.cache import KEPT_SECONDS, StoreCache

CONTENT = b"content" * 100


def name(number: int = 0) -> str:
    return f"f/x-{number:032x}"


def verify(path: Path) -> None:
    if path.read_bytes() != CONTENT:
        raise DataError("damaged")


def fetch(path: Path) -> None:
    path.write_bytes(CONTENT)


def fetch_and_count(root: str, calls: str) -> None:
    def counted(path: Path) -> None:
        with Path(calls).open("ab") as log:
            log.write(b".")
        time.sleep(0.2)
        fetch(path)

    assert StoreCache(Path(root)).copy(name(), verify, counted).read_bytes() == CONTENT


def fetch_half(root: str, begun: str) -> None:
    def hangs(path: Path) -> None:
        path.write_bytes(CONTENT[:10])
        Path(begun).touch()
        time.sleep(60)

    StoreCache(Path(root)).copy(name(), verify, hangs)


def use(copy: Path, seconds_ago: float) -> None:
    used_at = time.time() - seconds_ago
    os.utime(copy, (used_at, used_at))


def test_processes_that_want_a_copy_at_once_fetch_it_once(tmp_path: Path) -> None:
    start, calls = multiprocessing.get_context("spawn"), tmp_path / "calls"
    arguments = (str(tmp_path / "cache"), str(calls))
    children = [start.Process(target=fetch_and_count, args=arguments) for _ in "123"]
    for child in children:
        child.start()
    for child in children:
        child.join(60)
        assert child.exitcode == 0
        child.close()
    assert calls.read_bytes() == b"."


def test_one_that_is_killed_leaves_nothing_that_counts(tmp_path: Path) -> None:
    begun, root = tmp_path / "begun", tmp_path / "cache"
    arguments = (str(root), str(begun))
    child = multiprocessing.get_context("spawn").Process(target=fetch_half, args=arguments)
    child.start()
    eventually(begun.exists)
    os.kill(child.pid or 0, signal.SIGKILL)
    child.join(30)
    child.close()
    assert StoreCache(root).copy(name(), verify, fetch).read_bytes() == CONTENT
    assert list((root / ".writing").iterdir()) == []


def test_a_copy_that_is_there_is_not_fetched(tmp_path: Path) -> None:
    cache = StoreCache(tmp_path)
    copy = cache.copy(name(), verify, fetch)
    use(copy, 100)
    assert cache.copy(name(), verify, lambda _: pytest.fail("fetched")) == copy
    assert copy.stat().st_mtime > time.time() - 50


def test_what_cannot_be_fetched_leaves_nothing(tmp_path: Path) -> None:
    def fails(path: Path) -> None:
        path.mkdir()
        (path / "half").touch()
        raise InfrastructureError("gone")

    cache = StoreCache(tmp_path)
    with pytest.raises(InfrastructureError, match="gone"):
        cache.copy(name(), verify, fails)
    with pytest.raises(DataError, match="damaged"):
        cache.copy(name(), verify, lambda path: path.touch())
    assert [path.name for path in tmp_path.glob("x-*")] == []
    assert list((tmp_path / ".writing").iterdir()) == []


def test_the_copies_that_were_used_least_recently_go(tmp_path: Path) -> None:
    cache = StoreCache(tmp_path, limit_bytes=2 * len(CONTENT))
    copies = [cache.copy(name(number), verify, fetch) for number in range(3)]
    assert all(copy.exists() for copy in copies)  # somebody may be about to read them
    for number, copy in enumerate(copies):
        use(copy, KEPT_SECONDS + 100 - 10 * number)
    cache.copy(name(1), verify, fetch)
    newest = cache.copy(name(3), verify, fetch)
    assert [copy.exists() for copy in copies] == [False, True, False]
    assert newest.exists()


def test_a_copy_that_somebody_fetches_stays(tmp_path: Path) -> None:
    cache = StoreCache(tmp_path, limit_bytes=0)

    def slow(path: Path) -> None:
        path.write_bytes(CONTENT)
        use(path, 2 * KEPT_SECONDS)
        cache.copy(name(1), verify, fetch)
        assert path.exists()

    assert cache.copy(name(), verify, slow).exists()
