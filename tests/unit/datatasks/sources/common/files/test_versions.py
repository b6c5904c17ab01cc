"""Versions of files: what is compared, and how a difference reads."""

from __future__ import annotations

import os
from pathlib import Path

import fsspec
import pytest

from forebay.datatasks.sources.common.files.listing import Files
from forebay.datatasks.sources.common.files.versions import (
    PlannedFile,
    described,
    plan_again,
    same_version,
    version_text,
)
from forebay.errors import DataError


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        *(("5", "5", True), ("5", "6", False), ("5|mtime_ns=1", "5|mtime_ns=1", True)),
        *(("5|mtime_ns=1", "5|mtime_ns=2", False), ("5|mtime_ns=1", "6|mtime_ns=1", False)),
        ("5|mtime_ns=1|footer=a", "5|mtime_ns=1", True),  # nobody read the footer
        ("5|mtime_ns=1|footer=a", "5|footer=a", True),
        ("5|mtime_ns=1|footer=a", "5|footer=b", False),
        ("5|ETag=a", "5", True),
        ("5|ETag=a=b", "5|ETag=a=c", False),
    ],
)
def test_only_what_both_know_is_compared(one: str, other: str, expected: bool) -> None:
    assert same_version(one, other) is expected
    assert same_version(other, one) is expected


def test_a_version_in_words() -> None:
    words = described("5|mtime_ns=1772366400000000001|footer=ab")
    assert words == "5 bytes, of 2026-03-01T12:00:00.000000001Z, footer ab"
    assert described(version_text(7, "ETag", '"x"')) == '7 bytes, ETag "x"'


def test_a_difference_names_the_file_both_versions_and_the_way_out() -> None:
    file = PlannedFile("s3://b/x", "5|ETag=a", lambda: "6|ETag=b", plan_again("2026-03-01"))
    with pytest.raises(DataError) as raised:
        file.require_unchanged()
    assert str(raised.value) == (
        "s3://b/x was changed after it was planned: it had 5 bytes, ETag a, and now has 6 bytes, "
        "ETag b (run window 2026-03-01 again: it is then planned from the file as it is now)"
    )
    same = PlannedFile("s3://b/x", "5|ETag=a|footer=d", lambda: "5|ETag=a", "")
    same.require_unchanged()
    same.require_footer("d")
    with pytest.raises(DataError, match="it had 5 bytes, ETag a, footer d, and now has 5 bytes"):
        same.require_footer("e")


def test_where_nothing_was_planned_nothing_is_looked_at() -> None:
    def look() -> str:
        raise AssertionError

    PlannedFile("x", "", look, "").require_unchanged()
    PlannedFile("x", "", look, "").require_footer("e")


def test_a_listing_and_a_look_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"12345")
    for at, place in enumerate((str(tmp_path), f"file://{tmp_path}")):
        files = Files(place, tmp_path, {}, ".parquet")
        assert files.listing().versions.to_pylist() == [files.version("x.parquet")]
        before = files.version("x.parquet")
        os.utime(tmp_path / "x.parquet", ns=(0, (at + 1) * 10**9))
        assert not same_version(files.version("x.parquet"), before)


def test_behind_a_file_system_that_keeps_no_times(tmp_path: Path) -> None:
    system = fsspec.filesystem("memory")
    system.pipe_file("/versions/x.parquet", b"12345")
    files = Files("memory://versions", tmp_path, {}, ".parquet")
    assert files.listing().versions.to_pylist() == [files.version("x.parquet")]
    assert files.version("x.parquet").startswith("5|created=")
    system.rm("/versions", recursive=True)


def test_a_copy_that_kept_size_and_time_has_another_state(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"12345")
    os.utime(path, ns=(1, 1))
    files = Files(".", tmp_path, {}, ".parquet")
    before = files.listing()
    path.with_suffix(".new").write_bytes(b"54321")
    path.with_suffix(".new").rename(path)
    os.utime(path, ns=(1, 1))
    after = files.listing()
    assert after.versions.equals(before.versions)
    assert not after.states.equals(before.states)
