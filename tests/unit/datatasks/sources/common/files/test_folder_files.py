"""Files below a folder keep their names, whatever links there are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from forebay.datatasks.sources.common.files.listing import files_below


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
