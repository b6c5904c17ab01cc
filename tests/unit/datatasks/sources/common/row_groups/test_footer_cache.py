"""Footers are read once for each version of a file, whichever process plans."""

from __future__ import annotations

import logging
import os
import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from support.parquet_source import DAY, HOUR, START, days, evenly, source, table, write

from forebay.datatasks.sources.common.contract.base import Scan, Source
from forebay.datatasks.sources.common.contract.plan_cache import PlanCache
from forebay.datatasks.sources.common.row_groups import footer_cache
from forebay.home.paths import Home

FILES = 900


def opened(root: Path, **more: Any) -> Source:
    """As a process of its own would."""
    found = source(root, **more)
    found.cache = PlanCache(Home(root))
    return found


def calls(root: Path, count: int = 1, **more: Any) -> int:
    return opened(root, **more).scan(days(count)).storage_calls


def same(one: Scan, other: Scan) -> bool:
    return one.tasks.equals(other.tasks) and one.fingerprints == other.fingerprints


def two_files(root: Path) -> Path:
    write(root / "data/a.parquet", table(evenly(START, 5, HOUR)), row_group_size=2)
    return write(root / "data/b.parquet", table([None, *evenly(START, 3, HOUR)]), row_group_size=1)


def test_one_more_file_costs_one_listing_and_one_footer(tmp_path: Path) -> None:
    first = write(tmp_path / "data/0.parquet", table(evenly(START, 5, HOUR)))
    for number in range(1, FILES):
        shutil.copyfile(first, first.with_name(f"{number}.parquet"))
    assert calls(tmp_path) == 1 + FILES
    write(tmp_path / "data/next.parquet", table(evenly(START + DAY, 5, HOUR)))
    spans = days(1, START + DAY)
    scan = opened(tmp_path).scan(spans)
    assert (scan.storage_calls, scan.tasks["rows"].to_pylist()) == (1 + 1, [5])
    assert opened(tmp_path).scan(spans).storage_calls == 1


def test_what_is_kept_plans_as_what_was_read(tmp_path: Path) -> None:
    two_files(tmp_path)
    fresh = opened(tmp_path).scan(days(2))
    assert same(opened(tmp_path).scan(days(2)), fresh)
    assert calls(tmp_path) == 1


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = two_files(tmp_path)
    assert calls(tmp_path) == 1 + 2
    stamp = path.stat()
    content = path.read_bytes()
    path.write_bytes(content)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert calls(tmp_path) == 1 + 1, "whether the content is the same, only reading tells"
    write(path, table(evenly(START, 7, timedelta(minutes=1))))
    scan = opened(tmp_path).scan(days(1))
    assert (scan.storage_calls, sum(scan.tasks["rows"].to_pylist())) == (1 + 1, 5 + 7)


def test_another_event_time_has_footers_of_its_own(tmp_path: Path) -> None:
    rows = table(evenly(START, 5, HOUR))
    later = table(evenly(START + DAY, 5, HOUR))["at"]
    write(tmp_path / "data/a.parquet", rows.append_column("later", later))
    columns = {"at": "timestamp", "later": "timestamp", "n": "int"}
    assert calls(tmp_path, columns=columns) == 2
    scan = opened(tmp_path, columns=columns, event_time="later").scan(days(2))
    assert (scan.storage_calls, scan.tasks["span"].to_pylist()) == (2, [1])
    assert calls(tmp_path, columns=columns) == 1


def test_files_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    path = two_files(tmp_path)
    assert calls(tmp_path) == 3
    (kept,) = (tmp_path / "cache/footers").iterdir()
    many = kept.stat().st_size
    for number in range(50):
        write(tmp_path / f"data/c{number}.parquet", table(evenly(START, 5, HOUR)))
    assert calls(tmp_path) == 1 + 50
    assert kept.stat().st_size > many
    for number in range(50):
        (tmp_path / f"data/c{number}.parquet").unlink()
    write(path, table(evenly(START, 3, HOUR)))
    assert calls(tmp_path) == 1 + 1
    assert kept.stat().st_size <= many


def test_above_the_bound_the_newest_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footer_cache, "FILES_MAX", 3)
    for name in "abcde":
        write(tmp_path / f"data/{name}.parquet", table(evenly(START, 5, HOUR)))
    assert (calls(tmp_path), calls(tmp_path)) == (1 + 5, 1 + 2)


def test_a_file_of_another_place_or_meaning_is_not_taken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_files(tmp_path)
    fresh = opened(tmp_path).scan(days(2))
    (kept,) = (tmp_path / "cache/footers").iterdir()
    other = tmp_path / "other"
    write(other / "data/a.parquet", table(evenly(START, 1, HOUR)))
    opened(other).scan(days(1))
    (foreign,) = (other / "cache/footers").iterdir()
    shutil.copyfile(foreign, kept)
    with caplog.at_level(logging.WARNING):
        again = opened(tmp_path).scan(days(2))
    assert "holds something else: footers are read again" in caplog.text
    assert (again.storage_calls, same(again, fresh)) == (fresh.storage_calls, True)
    PlanCache(Home(tmp_path)).keep(f"footers/{kept.name}", b"no table")
    assert calls(tmp_path, 2) == fresh.storage_calls
    assert "is not a table, footers are read again" in caplog.text
    monkeypatch.setattr(footer_cache, "_MEANING", "0")
    assert calls(tmp_path, 2) == fresh.storage_calls


def test_an_unreadable_footer_is_looked_at_again(tmp_path: Path) -> None:
    path = two_files(tmp_path)
    path.write_bytes(b"no parquet")
    assert calls(tmp_path, bad_rows="dead_letter") == 1 + 2
    assert calls(tmp_path, bad_rows="dead_letter") == 1 + 1
