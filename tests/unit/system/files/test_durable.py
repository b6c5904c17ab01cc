"""Files that survive: replaced whole, private where they must be, logs without a torn middle."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.crashes import deaths, disk

from forebay.errors import DataError, InfrastructureError
from forebay.system.files.durable import (
    append_lines,
    copy_file,
    folder_checksums,
    make_folder,
    new_file,
    read_json,
    read_lines,
    sync,
    write_atomically,
    write_private,
)


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@contextmanager
def full_at(size: int) -> Iterator[None]:
    """No file grows beyond `size` bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    old = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, old)


@pytest.mark.parametrize("content", ["ü\n", b"\xff\x00"])
def test_a_file_and_its_folders_are_made(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "a" / "b" / "file"
    write_atomically(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    write_atomically(path, "other")
    assert path.read_text() == "other"
    assert [each.name for each in path.parent.iterdir()] == ["file"]


@pytest.mark.usefixtures("open_umask")
def test_a_secret_is_private_from_the_moment_it_exists(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("an older one that anybody may read")
    with new_file(path, 0o600) as stream:
        stream.write(b"x")
        stream.flush()
        (begun,) = set(tmp_path.iterdir()) - {path}
        assert begun.stat().st_mode & 0o777 == 0o600
    write_private(path, "secret")
    assert path.stat().st_mode & 0o777 == 0o600
    write_atomically(path, "public")
    assert path.stat().st_mode & 0o777 == 0o666


def test_what_the_disk_refuses_is_named_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, "old")
    with full_at(10), pytest.raises(InfrastructureError, match=rf"^{path}: .*too large"):
        write_atomically(path, "n" * 11)
    assert (path.read_text(), [each.name for each in tmp_path.iterdir()]) == ("old", ["file"])
    with pytest.raises(InfrastructureError, match=str(path)):
        write_atomically(path / "below", "a file where a folder should be")
    with pytest.raises(InfrastructureError, match=str(path)):
        append_lines(path / "below", "a file where a folder should be\n")
    with pytest.raises(InfrastructureError, match=str(path)), new_file(path) as stream:
        stream.write(bytes(1_000_000) + os.read(-1, 1))
    assert (path.read_text(), [each.name for each in tmp_path.iterdir()]) == ("old", ["file"])


def test_a_death_at_any_moment_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / "state"
    before: bytes | None = None
    for content in (b"new", b"newer"):
        seen = []
        for died in deaths(tmp_path, lambda _, content=content: write_atomically(path, content)):
            seen.append(died.after_power_loss(path))
            assert died.after_power_loss(path, named=True) in {before, content}
            assert (path.read_bytes() if path.exists() else None) in {before, content}
            path.unlink(missing_ok=True)
            if before is not None:
                write_atomically(path, before)
        assert (seen[0], seen[-1], set(seen)) == (before, content, {before, content})
        write_atomically(path, content)
        before = content


def test_a_leftover_of_a_killed_process_does_not_stop_the_next_write(tmp_path: Path) -> None:
    path = tmp_path / "state"
    for _ in deaths(tmp_path, lambda _: write_atomically(path, "new")):
        write_atomically(path, "next")
        assert [each.name for each in tmp_path.iterdir()] == ["state"]


def test_folders_that_were_made_are_there_after_a_power_loss(tmp_path: Path) -> None:
    with disk(tmp_path) as watched:
        make_folder(tmp_path / "a" / "b")
        assert watched.after_power_loss(tmp_path / "a") is not None
        write_atomically(tmp_path / "a" / "b" / "c" / "file", b"x")
        assert watched.after_power_loss(tmp_path / "a") == {"b": {"c": {"file": b"x"}}}
        for _ in range(2):
            write_atomically(tmp_path / "anew" / "file", b"x")
            assert watched.after_power_loss(tmp_path / "anew") == {"file": b"x"}
            (tmp_path / "anew").rename(tmp_path / "old")
            sync(tmp_path)
            shutil.rmtree(tmp_path / "old")
            assert watched.after_power_loss(tmp_path / "anew") is None


@pytest.mark.guarantee(
    "a process dies between making a folder and syncing its name, and then the power fails",
    "nothing; whoever uses the folder next syncs its name",
)
def test_folders_whose_maker_died_are_there_after_a_power_loss(tmp_path: Path) -> None:
    with disk(tmp_path) as watched:
        (tmp_path / "a" / "b").mkdir(parents=True)
        assert watched.after_power_loss(tmp_path / "a") is None
        write_atomically(tmp_path / "a" / "b" / "file", b"x")
        assert watched.after_power_loss(tmp_path / "a") == {"b": {"file": b"x"}}


def test_threads_replace_one_file_without_mixing(tmp_path: Path) -> None:
    path, texts = tmp_path / "file", {str(number) * 100_000 for number in range(4)}
    threads = [
        threading.Thread(target=lambda text=text: [write_atomically(path, text) for _ in range(20)])
        for text in texts
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        if path.exists():
            assert path.read_text() in texts
    for thread in threads:
        thread.join()


def test_a_torn_line_stays_alone_and_one_that_did_not_fit_leaves_the_others_readable(
    tmp_path: Path,
) -> None:
    path = tmp_path / "logs" / "log"
    assert read_lines(path) == []
    append_lines(path, "one\ntwo\n")
    path.write_bytes(path.read_bytes() + b"thr")
    append_lines(path, "four\n")
    assert read_lines(path) == ["one", "two", "thr", "four"]
    full = full_at(path.stat().st_size + 4)
    with full, pytest.raises(InfrastructureError, match=str(path)):
        append_lines(path, "a long line\n")
    append_lines(path, "five\n")
    assert read_lines(path)[3:] == ["four", "a lo", "five"]


def test_appended_lines_survive_a_power_loss(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with disk(tmp_path) as watched:
        append_lines(path, "one\n")
        assert watched.after_power_loss(path) == b"one\n"
        append_lines(path, "two\n")
        assert watched.after_power_loss(path) == b"one\ntwo\n"
        (tmp_path / "left").write_bytes(b"by one that died\n")
        append_lines(tmp_path / "left", "two\n")
        assert watched.after_power_loss(tmp_path / "left") == b"by one that died\ntwo\n"


def test_what_is_no_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    write_atomically(path, '{"a": 1}')
    assert read_json(path) == {"a": 1}
    path.write_text("{")
    with pytest.raises(DataError, match=r"facts.json is not JSON .*move it away"):
        read_json(path)


def test_checksums_name_every_file_below(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a" / "b", "1")
    write_atomically(tmp_path / "c", "1")
    found = folder_checksums(tmp_path)
    assert (list(found), found["a/b"]) == (["a/b", "c"], found["c"])


def test_a_copy_has_the_mode_that_it_should(tmp_path: Path, open_umask: None) -> None:
    (tmp_path / "one").write_text("rows")
    (tmp_path / "one").chmod(0o400)
    copy_file(tmp_path / "one", tmp_path / "other")
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o600, "its writer has to write it"
    assert (tmp_path / "other").read_text() == "rows"
    copy_file(tmp_path / "one", tmp_path / "other")
