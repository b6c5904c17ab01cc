"""Where the database is stored, who can access it, and what is cleaned up."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from forebay.embedded.layout import Layout
from forebay.embedded.postgres import place as postgres_place
from forebay.embedded.postgres import server as postgres
from forebay.embedded.postgres.account import Account
from forebay.embedded.postgres.place import (
    SOCKET_NAME,
    SOCKET_PATH_MAX,
    Place,
    database_place,
    own_folder,
    prepare_place,
    reachable_programs,
    remove_database,
    wheel_programs,
)
from forebay.errors import InfrastructureError
from forebay.home.paths import Home


def me() -> Account:
    entry = pwd.getpwuid(os.geteuid())
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path, tmp_path / "socket", None)
    made.data.mkdir()
    return made


@pytest.fixture
def roots(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """As if root called, with this user in the part of the account that runs the server."""
    folder = tmp_path / "data-of-root"
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(postgres_place, "ROOTS_DATA", folder)
    monkeypatch.setattr(postgres_place, "closed_on_the_way", lambda _path: None)
    monkeypatch.setattr(postgres_place, "own_folder", lambda path, _mode: path.mkdir(exist_ok=True))
    monkeypatch.setattr(postgres_place, "account_for_root", lambda _data: me())
    return folder


def test_a_user_keeps_it_in_the_home_but_for_the_socket_of_a_deep_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    homes = [tmp_path / ("deep" * 30) / name for name in ("a", "b")]
    places = [database_place(Layout(Home(home))) for home in homes]
    for home, place in zip(homes, places, strict=True):
        assert (place.data.is_relative_to(home), place.account) == (True, None)
    sockets = [place.socket for place in places]
    assert len(set(sockets)) == 2
    assert database_place(Layout(Home(Path("/h")))).socket.is_relative_to("/h")
    assert all(len(os.fsencode(socket / SOCKET_NAME)) <= SOCKET_PATH_MAX for socket in sockets)


def test_roots_lies_outside_the_home_and_is_dropped_once_that_was_deleted(
    roots: Path, tmp_path: Path
) -> None:
    layout = Layout(Home(tmp_path / "home"))
    layout.create()
    place = database_place(layout)
    assert (place.folder.parent, place.account is None) == (roots, False)
    prepare_place(layout, place)
    (place.data / "PG_VERSION").write_text("18")
    prepare_place(layout, place)
    assert (place.data / "PG_VERSION").exists()
    shutil.rmtree(layout.home.root)
    layout.create()
    prepare_place(layout, place)
    assert list(place.data.iterdir()) == []
    remove_database(place)
    assert not place.folder.exists()


def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    own_folder(tmp_path / "mine", 0o711)
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o711
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    (tmp_path / "nowhere").symlink_to(tmp_path / "not-there")
    (tmp_path / "file").touch()
    for name in ("open", "link", "nowhere", "file"):
        with pytest.raises(InfrastructureError, match=r"move it away, or, .* FOREBAY_HOME"):
            own_folder(tmp_path / name, 0o700)


def test_a_closed_parent_is_named_and_stays_closed(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    place = Place(closed / "data", closed / "socket", me())
    with pytest.raises(InfrastructureError, match=r"cannot enter .*chmod o\+x"):
        place.check()
    assert closed.stat().st_mode & 0o777 == 0o700


def test_programs_in_a_closed_folder_are_copied_and_run(tmp_path: Path) -> None:
    """As in an environment below /root: tmp_path is closed to others."""
    wheel = wheel_programs()
    private = tmp_path / "site-packages"
    left_out = shutil.ignore_patterns("include", "*.a")
    shutil.copytree(wheel.parent, private / wheel.parent.name, ignore=left_out)
    libraries = f"{wheel.parent.name}.libs"
    shutil.copytree(wheel.parent.parent / libraries, private / libraries)
    private.chmod(0o700)
    programs = private / wheel.parent.name / wheel.name
    copy = reachable_programs(programs, tmp_path / "copy")
    assert copy.is_relative_to(tmp_path / "copy")
    assert all(path.stat().st_mode & 0o004 for path in (tmp_path / "copy").rglob("*"))
    shutil.rmtree(private)
    for program in ("initdb", "postgres"):
        asked = [copy / "bin" / program, "--version"]
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
        assert "PostgreSQL" in done.stdout


def test_programs_that_all_can_reach_are_not_copied(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("forebay.embedded.postgres.place.closed_on_the_way", lambda _path: None)
    assert reachable_programs(tmp_path / "programs", tmp_path / "copy") == tmp_path / "programs"
    assert not (tmp_path / "copy").exists()


def test_it_listens_on_no_port(place: Place) -> None:
    command = postgres.server_command(Path("/programs"), place)
    assert "listen_addresses=" in command
    assert "unix_socket_permissions=0700" in command
    assert not [word for word in command if "fsync" in word or "synchronous_commit" in word]


def test_it_is_ready_when_it_says_so_and_a_pid_file_of_a_dead_one_is_removed(place: Place) -> None:
    assert not postgres.is_ready(place, 17)
    lines = ["17", str(place.data), "0", "5432", str(place.socket), "", " 1 2", "starting", ""]
    path = place.data / "postmaster.pid"
    path.write_text("\n".join(lines))
    assert not postgres.is_ready(place, 17)
    path.write_text("\n".join(lines).replace("starting", "ready   "))
    assert postgres.is_ready(place, 17)
    assert not postgres.is_ready(place, 18)
    # Its pid is another program's by now: PostgreSQL would refuse to start.
    for text in (f"{os.getpid()}\n{place.data}\n", "", "999999999\n"):
        path.write_text(text)
        postgres.drop_stale_pid_file(place)
        assert not path.exists()


def test_a_database_is_made_again_after_a_torn_start(place: Place) -> None:
    (place.data / "base").mkdir()
    (place.data / "PG_VERSION").write_text("18")
    assert not postgres.is_initialised(place)
    postgres.empty_data(place)
    assert list(place.data.iterdir()) == []
    (place.data / "PG_VERSION").write_text("18")
    postgres.mark_initialised(place)
    assert postgres.is_initialised(place)
    assert postgres.prepared_for(place) is None
    postgres.mark_prepared(place, "3.3.2")
    assert postgres.prepared_for(place) == "3.3.2"
