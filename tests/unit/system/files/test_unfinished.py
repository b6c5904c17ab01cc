"""A file being written stays while its writer lives, and is removed once it is dead."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from forebay.system.files.durable import new_file, remove_left, write_atomically, write_private
from forebay.system.files.trees import find_leftovers, new_tree, remove_leftovers, remove_tree


def killed(act: Callable[[], object]) -> None:
    """A process of this kind is killed by `act`."""
    child = os.fork()
    if not child:
        act()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def write_and_die(path: Path) -> None:
    with new_file(path) as stream:
        stream.write(b"half")
        stream.flush()
        die()


def fill_and_die(tree: Path) -> None:
    with new_tree(tree) as folder:
        (folder / "half").touch()
        die()


def remove_and_die(tree: Path) -> None:
    tree.mkdir(parents=True)
    shutil.rmtree = die  # type: ignore[assignment]
    remove_tree(tree)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def left(root: Path, changed_before: float | None = None) -> list[str]:
    moment = time.time() if changed_before is None else changed_before
    return [str(each.relative_to(root)) for each in find_leftovers(root, root / "skipped", moment)]


def test_the_next_writer_of_a_file_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    path = tmp_path / "token"
    killed(lambda: write_and_die(path))
    assert names(tmp_path) == [".token.0.unfinished"]
    write_atomically(path, "new")
    assert (names(tmp_path), path.read_text()) == (["token"], "new")


def test_a_living_writer_keeps_what_it_writes(tmp_path: Path) -> None:
    path = tmp_path / "state"
    with new_file(path) as slow:
        slow.write(b"slow")
        write_atomically(path, "fast")
        assert (path.read_text(), left(tmp_path)) == ("fast", [])
        assert not remove_left(tmp_path / ".state.0.unfinished")
        assert names(tmp_path) == [".state.0.unfinished", "state"]
    assert (path.read_text(), names(tmp_path)) == ("slow", ["state"])


def test_a_secret_is_not_written_into_what_others_may_read(tmp_path: Path) -> None:
    path = tmp_path / "token"
    killed(lambda: write_and_die(path))
    (tmp_path / ".token.0.unfinished").chmod(0o666)
    write_private(path, "secret")
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_is_begun_while_somebody_looks_for_leftovers_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real, begun = tmp_path / ".state.0.unfinished", os.open, []

    def looked_at(place: Path, flags: int, *more: int) -> int:
        try:
            return real(place, flags, *more)
        except FileNotFoundError:
            begun.append(real(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            raise

    with monkeypatch.context() as raced:
        raced.setattr(os, "open", looked_at)
        remove_left(path)
    assert len(begun) == 1
    os.close(begun.pop())
    assert names(tmp_path) == [path.name]


def test_what_is_removed_before_its_writer_has_locked_it_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real, removals = tmp_path / "state", os.open, iter("123")

    def made_and_removed(place: Path, flags: int, *more: int) -> int:
        descriptor = real(place, flags, *more)
        if flags & os.O_EXCL and next(removals, None):
            assert remove_left(place)
        return descriptor

    with monkeypatch.context() as raced:
        raced.setattr(os, "open", made_and_removed)
        write_atomically(path, "new")
    assert next(removals, None) is None
    assert (path.read_text(), names(tmp_path)) == ("new", ["state"])


def test_what_dead_writers_left_anywhere_below_is_found_and_removed(tmp_path: Path) -> None:
    files = [tmp_path / "a" / "b" / "one", tmp_path / "two", tmp_path / "skipped" / "three"]
    for path in files:
        killed(partial(write_and_die, path))
    tree = tmp_path / "trees" / "one"
    killed(lambda: fill_and_die(tree))
    killed(lambda: remove_and_die(tmp_path / "gone" / "two"))
    (tmp_path / "a" / ".hidden").touch()
    (tmp_path / "a" / ".unfinished").mkdir()  # nobody writes trees there
    found = [".two.0.unfinished", "a/b/.one.0.unfinished", "gone/.removed", "trees/.unfinished"]
    assert (left(tmp_path, time.time() - 60), left(tmp_path)) == ([], found)
    with new_tree(tree):
        assert left(tmp_path) == found[:-1], "its writer lives"
    gone = remove_leftovers(find_leftovers(tmp_path, tmp_path / "skipped", time.time()))
    assert [str(each.relative_to(tmp_path)) for each in gone] == found[:-1]
    assert (left(tmp_path), names(tmp_path / "a")) == ([], [".hidden", ".unfinished", "b"])
    assert names(tmp_path / "skipped") == [".three.0.unfinished"]


def test_what_somebody_begins_again_meanwhile_stays(tmp_path: Path) -> None:
    path, tree = tmp_path / "state", tmp_path / "tree"
    killed(lambda: write_and_die(path))
    killed(lambda: fill_and_die(tree))
    found = find_leftovers(tmp_path, tmp_path / "skipped", time.time())
    assert len(found) == 2
    with new_file(path), new_tree(tree):
        assert remove_leftovers(found) == []
    assert path.is_file()
    assert tree.is_dir()
