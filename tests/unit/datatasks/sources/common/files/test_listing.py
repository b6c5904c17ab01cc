"""Files of a folder, local and behind fsspec: what is listed, hidden, counted, refused, changed."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

from forebay.datatasks.sources.common.files.listing import Files, files_below, read_failure
from forebay.datatasks.sources.common.files.versions import (
    PlannedFile,
    described,
    plan_again,
    same_version,
    version_text,
)
from forebay.errors import DataError, InfrastructureError

NAMES = {"a.parquet": 1, "day=1/b.parquet": 22, "_day=2/c.parquet": 333, "day=1/deep/d.parquet": 4}
NAMES |= {"day=1/e.txt": 5, "_SUCCESS": 0, "day=1/_SUCCESS": 0, "day=1/.part": 6}
NAMES |= {"_temporary/f.parquet": 7, ".cache/g.parquet": 8, ".a=b/h.parquet": 9}
SHOWN = ["_day=2/c.parquet", "a.parquet", "day=1/b.parquet", "day=1/deep/d.parquet", "day=1/e.txt"]
MARKERS = ["_SUCCESS", "day=1/.part", "day=1/_SUCCESS"]


def write_all(root: Path) -> None:
    for name, size in NAMES.items():
        path = root / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))


@pytest.fixture(params=["local", "memory"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    if request.param == "local":
        write_all(tmp_path)
        yield Files("data", tmp_path, {}, (".parquet",))
        return
    system = fsspec.filesystem("memory")
    for name, size in NAMES.items():
        system.pipe_file(f"/bucket/data/{name}", bytes(size))
    yield Files("memory://bucket/data", tmp_path, {}, (".parquet",))
    system.rm("/bucket", recursive=True)


def test_everything_but_bookkeeping_is_listed(files: Files) -> None:
    found = files.listing()
    assert (found.paths.to_pylist(), files.calls) == (SHOWN, 1)
    assert found.sizes.tolist() == [NAMES[name] for name in SHOWN]
    with_markers = files.listing(hidden=True)
    assert with_markers.paths.to_pylist() == sorted([*SHOWN, *MARKERS])
    assert with_markers.sizes.tolist() == [NAMES[name] for name in sorted([*SHOWN, *MARKERS])]
    some = found.take(np.array([1, 3]))
    assert (some.paths.to_pylist(), some.sizes.tolist()) == ([SHOWN[1], SHOWN[3]], [1, 4])
    assert (len(some), files.calls) == (2, 2)


def test_what_lies_there_is_told_in_a_sentence(files: Files) -> None:
    listing = files.listing()
    assert files.lies_there(listing).endswith("contains " + ", ".join(SHOWN))
    longer = listing.take(np.array([0, 1, 2, 3, 4, 4, 4]))
    assert files.lies_there(longer).endswith("day=1/e.txt and 2 more")


def test_a_file_is_opened_where_it_lies(files: Files) -> None:
    with files.opened("day=1/b.parquet") as opened:
        found = Path(opened).read_bytes() if isinstance(opened, str) else opened.read()
    assert found == bytes(22)


def test_a_file_that_goes_away_meanwhile_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / name).touch()
    scandir = os.scandir

    def scan_and_lose(folder: str) -> list[os.DirEntry[str]]:
        entries = list(scandir(folder))
        (tmp_path / "a.parquet").unlink()
        return entries

    monkeypatch.setattr(os, "scandir", scan_and_lose)
    assert Files(".", tmp_path, {}, (".parquet",)).listing().paths.to_pylist() == ["b.parquet"]


def test_things_exist(files: Files) -> None:
    assert files.exists("day=1/_SUCCESS")
    assert not files.exists("day=9/_SUCCESS")
    assert files.exists("")
    assert files.calls == 3


def test_a_folder_behind_fsspec_that_is_not_there(tmp_path: Path) -> None:
    assert len(Files("memory://nowhere/at/all", tmp_path, {}, (".parquet",)).listing()) == 0


@pytest.mark.parametrize(
    ("place", "folder", "matching"),
    [
        ("data", "data", ["_day=2/c.parquet", "a.parquet", "day=1/deep/d.parquet"]),
        ("data/*.parquet", "data", ["a.parquet"]),
        ("data/day=*/?.parquet", "data", ["day=1/b.parquet"]),
        ("data/a.parquet", "data", ["a.parquet"]),
    ],
)
def test_places(tmp_path: Path, place: str, folder: str, matching: list[str]) -> None:
    write_all(tmp_path)
    files = Files(place, tmp_path, {}, (".parquet",))
    assert files.folder == str(tmp_path / folder)
    paths = files.listing().paths.to_pylist()
    found = [path for path in paths if re.fullmatch(files.regex, path)]
    assert set(matching) <= set(found)
    assert not set(found) & {"day=1/e.txt"}
    assert (files.full("x"), files.full("")) == (f"{files.folder}/x", files.folder)


def test_a_pipe_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=r"rows\.parquet is not a file .*: move it away"):
        Files(str(tmp_path), tmp_path, {}, (".parquet",)).listing()


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"\xff.parquet")).write_bytes(b"")
    with pytest.raises(DataError, match=r"udcff\.parquet': its name is not UTF-8: rename it"):
        Files(str(tmp_path), tmp_path, {}, (".parquet",)).listing()


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_two_names_of_one_file(tmp_path: Path, scheme: str) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.parquet").write_bytes(b"same")
    files = Files(f"{scheme}{tmp_path}", tmp_path, {}, (".parquet",))
    files.require_one_name(files.listing())
    (tmp_path / "z.parquet").hardlink_to(tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet and .*z\.parquet are the same file .*; rem"):
        files.require_one_name(files.listing())


def test_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "gone.parquet").symlink_to(tmp_path / "nothing")
    with pytest.raises(DataError, match="is a broken link"):
        Files(".", tmp_path, {}, (".parquet",)).listing()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError(errno.ENOENT, "x"), DataError),
        (PermissionError(errno.EACCES, "x"), InfrastructureError),
        (OSError(errno.EIO, "x"), InfrastructureError),
        (OSError(errno.EINVAL, "bad magic"), None),
        (OSError("Couldn't deserialize thrift"), None),
        (ValueError("x"), None),
    ],
)
def test_what_an_error_while_reading_means(error: Exception, kind: Any) -> None:
    found = read_failure(error, "/data/a.parquet")
    assert type(found) is (kind or type(None))
    assert found is None or "/data/a.parquet" in str(found)


def test_what_is_kept_of_a_place_is_named_without_its_secrets(tmp_path: Path) -> None:
    def identity(**storage: str) -> str:
        return Files("data/*.parquet", tmp_path, storage, (".parquet",)).identity

    assert "planted" not in identity(secret="planted", key="k", endpoint_url="http://s3:1")
    assert identity(token="planted-one") == identity(token="planted-two")
    assert identity(endpoint_url="http://s3:1") != identity(endpoint_url="http://s3:2")


def names(folder: Path) -> list[str]:
    """In order; a file that is found twice is there twice."""
    found = files_below(str(folder), lambda name: name.startswith("."))
    return sorted(Path(entry.path).relative_to(folder).as_posix() for entry in found)


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("")


@pytest.mark.parametrize("backwards", [False, True])
def test_a_folder_keeps_its_own_name_in_whatever_order_the_disk_lists_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backwards: bool
) -> None:
    """The name of a file is part of its rows' identity."""
    listed = os.scandir

    def sorted_entries(path: str) -> Any:
        return sorted(listed(path), key=lambda entry: entry.name, reverse=backwards)

    write(tmp_path, "data/m/x", "other/b/z")
    (tmp_path / "data/a").symlink_to("m")
    (tmp_path / "data/outside").symlink_to(tmp_path / "other")
    (tmp_path / "data/second").symlink_to(tmp_path / "other")
    monkeypatch.setattr(os, "scandir", sorted_entries)
    assert names(tmp_path / "data") == ["a/x", "m/x", "outside/b/z", "second/b/z"]


def test_what_leads_back_brings_nothing(tmp_path: Path) -> None:
    write(tmp_path, "data/x", "one/y", "two/z")
    (tmp_path / "data/again").symlink_to(tmp_path / "data")
    (tmp_path / "data/one").symlink_to(tmp_path / "one")
    (tmp_path / "one/two").symlink_to(tmp_path / "two")
    (tmp_path / "two/one").symlink_to(tmp_path / "one")
    (tmp_path / "two/data").symlink_to(tmp_path / "data")
    assert names(tmp_path / "data") == ["one/two/z", "one/y", "x"]


def test_a_link_to_a_folder_above_brings_nothing(tmp_path: Path) -> None:
    """However the source's folder is named: it may be a link itself."""
    write(tmp_path, "disk/lake/data/x", "disk/lake/other/y")
    (tmp_path / "disk/lake/data/up").symlink_to("..")
    (tmp_path / "disk/lake/data/far").symlink_to(tmp_path / "disk")
    (tmp_path / "disk/lake/data/beside").symlink_to("../other")
    (tmp_path / "named").symlink_to("disk/lake/data")
    for folder in ("disk/lake/data", "named"):
        assert names(tmp_path / folder) == ["beside/y", "x"]


def test_folders_that_all_link_to_each_other_come_to_an_end(tmp_path: Path) -> None:
    folders = [tmp_path / f"data/{number}" for number in range(12)]
    for folder in folders:
        write(folder, "x")
        for other in folders:
            (folder / f"to-{other.name}").symlink_to(other)
    assert len(names(tmp_path / "data")) == 12 + 12 * 11


def test_hidden_and_missing_folders(tmp_path: Path) -> None:
    write(tmp_path, "data/.tmp/x", "data/.y", "data/z")
    assert (names(tmp_path / "data"), names(tmp_path / "nothing")) == ([".y", "z"], [])


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
