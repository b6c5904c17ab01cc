"""Folders that get their name once complete: refused or replaced, removed in one step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.crashes import deaths, disk, tree_at

from forebay.errors import InfrastructureError
from forebay.system.files.trees import TreeExistsError, name_tree, new_tree, remove_tree

LEFT = {".trees.lock"}


def fill(folder: Path, text: str) -> None:
    (folder / "variables" / "deep").mkdir(parents=True)
    (folder / "variables" / "deep" / "data").write_text(text)
    (folder / "plan").write_text(text)
    (folder / "empty").mkdir()


def tree_of(text: str) -> dict[str, object]:
    content = text.encode()
    return {"variables": {"deep": {"data": content}}, "plan": content, "empty": {}}


def write(target: Path, text: str, *, replace: bool = False) -> None:
    with new_tree(target, replace=replace) as folder:
        fill(folder, text)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - LEFT


def test_sub_folders_are_there_after_a_power_loss(tmp_path: Path) -> None:
    target = tmp_path / "w" / "g1"
    with disk(tmp_path) as watched:
        write(target, "1")
        assert watched.after_power_loss(target) == tree_of("1")
        assert watched.after_power_loss(tmp_path / "w") is not None
        write(target, "2", replace=True)
        assert watched.after_power_loss(target) == tree_of("2")


def test_a_tree_that_is_there_or_came_first_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "g1"
    write(target, "1")
    with pytest.raises(TreeExistsError, match=str(target)):
        write(target, "2")
    assert (tree_at(target), names(tmp_path)) == (tree_of("1"), {"g1"})
    remove_tree(target)
    with pytest.raises(TreeExistsError), new_tree(target):
        fill(target, "1")  # by somebody who knows no lock
    assert (tree_at(target), names(tmp_path)) == (tree_of("1"), {"g1"})


def test_writers_of_one_folder_take_turns(tmp_path: Path) -> None:
    outcomes: list[str] = []

    def one(text: str) -> None:
        try:
            write(tmp_path / "g1", text)
            outcomes.append(text)
        except TreeExistsError:
            outcomes.append("kept")

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(one, "abcd"))
    (won,) = set(outcomes) - {"kept"}
    assert tree_at(tmp_path / "g1") == tree_of(won)
    assert outcomes.count("kept") == 3


def test_an_error_in_the_block_leaves_nothing_and_what_the_disk_refuses_is_named(
    tmp_path: Path,
) -> None:
    target = tmp_path / "g1"
    write(target, "1")
    with (
        pytest.raises(InfrastructureError, match="File exists"),
        new_tree(target, replace=True) as folder,
    ):
        [fill(folder, text) for text in "23"]
    assert (tree_at(target), names(tmp_path)) == (tree_of("1"), {"g1"})
    (tmp_path / "file").write_text("")
    with pytest.raises(InfrastructureError, match=str(tmp_path / "file")):
        write(tmp_path / "file" / "g1", "1")
    with pytest.raises(InfrastructureError, match=str(tmp_path / "g1")), new_tree(tmp_path / "g1"):
        raise OSError(28, "No space left on device")


def test_a_finished_folder_is_named(tmp_path: Path) -> None:
    fill(tmp_path / "unchecked", "1")
    with disk(tmp_path) as watched:
        name_tree(tmp_path / "unchecked", tmp_path / "model")
        assert watched.after_power_loss(tmp_path / "model") == tree_of("1")
    fill(tmp_path / "unchecked", "2")
    with pytest.raises(TreeExistsError):
        name_tree(tmp_path / "unchecked", tmp_path / "model")
    assert tree_at(tmp_path / "unchecked") == tree_of("2")


def test_a_removal_that_dies_leaves_all_or_nothing_and_the_next_one_cleans_up(
    tmp_path: Path,
) -> None:
    target = tmp_path / "g1"
    remove_tree(target)
    write(target, "1")
    for died in deaths(tmp_path, lambda _: remove_tree(target)):
        assert tree_at(target) in (None, tree_of("1"))
        assert died.after_power_loss(target) in (None, tree_of("1"))
        remove_tree(target)
        assert names(tmp_path) == set()
        write(target, "1")
    assert tree_at(target) == tree_of("1")
