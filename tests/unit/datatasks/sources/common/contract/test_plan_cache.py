"""What plans cache of storage: whole, verified, bounded, and never required."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

import pytest

from forebay.datatasks.sources.common.contract.plan_cache import KEPT_SECONDS, PlanCache
from forebay.home.paths import Home


def test_what_is_kept_is_there_for_the_next(tmp_path: Path) -> None:
    PlanCache(Home(tmp_path)).keep("a/x", b"content")
    assert PlanCache(Home(tmp_path)).read("a/x") == b"content"
    assert PlanCache(Home(tmp_path)).read("a/y") is None
    PlanCache(Home(tmp_path)).keep("a/x", memoryview(b"other"))
    assert PlanCache(Home(tmp_path)).read("a/x") == b"other"


@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:3], lambda b: b[:-1] + b"?"])
def test_what_is_damaged_is_not_taken_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damage: object
) -> None:
    PlanCache(Home(tmp_path)).keep("a/x", b"content")
    path = tmp_path / "cache/a/x"
    assert callable(damage)
    path.write_bytes(damage(path.read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert PlanCache(Home(tmp_path)).read("a/x") is None
    assert f"{path} is damaged" in caplog.text


def test_a_look_writes_nothing(tmp_path: Path) -> None:
    PlanCache(Home(tmp_path), only_look=True).keep("a/x", b"content")
    assert list(tmp_path.iterdir()) == []
    PlanCache().keep("a/x", b"content")
    assert PlanCache().read("a/x") is None


def test_a_home_that_is_not_there_is_made_for_its_user_alone(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        PlanCache(Home(tmp_path / "home")).keep("a/x", b"content")
    finally:
        os.umask(umask)
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


def test_what_the_disk_refuses_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "cache").write_text("a file where the folder would be")
    PlanCache(Home(tmp_path)).keep("a/x", b"content")
    assert "a/x is not kept, and will be read from storage again" in caplog.text
    assert PlanCache(Home(tmp_path)).read("a/x") is None


def test_what_nobody_reads_for_months_goes(tmp_path: Path) -> None:
    cache = PlanCache(Home(tmp_path))
    old = time.time() - KEPT_SECONDS - 60
    for name in ("a/unused", "a/used"):
        cache.keep(name, b"content")
        os.utime(tmp_path / "cache" / name, (old, old))
    cache.read("a/used")
    cache.keep("a/new", b"content")
    assert sorted(path.name for path in (tmp_path / "cache/a").iterdir()) == ["new", "used"]
