"""Ports and bounded logs; secrets and folders of a home: who may read them, when they change."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from forebay.embedded.layout import Layout
from forebay.embedded.log_files import PARSER_LOG_DAYS, drop_parser_logs, rotate
from forebay.embedded.ports import LOOPBACK, free_ports, keep_port
from forebay.embedded.secret_files import USER, load_secrets, new_password, read_password
from forebay.errors import InfrastructureError
from forebay.home.paths import Home


def test_a_port_that_is_kept_is_the_preferred_one_or_another() -> None:
    [port] = free_ports(0)
    with keep_port(port) as first, keep_port(port) as second:
        assert first.getsockname() == (LOOPBACK, port)
        assert second.getsockname()[1] != port
        assert free_ports(port) != [port]
    assert free_ports(port) == [port]


def test_a_long_log_is_moved_and_its_writer_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "part.log"
    with path.open("ab", buffering=0) as writer:
        writer.write(b"x" * 100)
        assert rotate(path, bytes_max=99)
        writer.write(b"new\n")
    assert (path.read_bytes(), (tmp_path / "part.log.1").read_bytes()) == (b"new\n", b"x" * 100)
    assert not rotate(path, bytes_max=99)


def test_logs_of_the_parser_are_dropped_after_a_week(tmp_path: Path) -> None:
    old, new = tmp_path / "2026-01-01", tmp_path / "2026-01-09"
    for day in (old, new):
        day.mkdir()
        (day / "ads.py.log").write_text("x")
    now = new.stat().st_mtime
    os.utime(old, (now, now - (PARSER_LOG_DAYS + 1) * 86_400))
    drop_parser_logs(tmp_path, now)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2026-01-09"]
    drop_parser_logs(tmp_path / "none", now)


@pytest.fixture
def layout(tmp_path: Path) -> Iterator[Layout]:
    """With a umask that hides nothing."""
    before = os.umask(0)
    layout = Layout(Home(tmp_path))
    layout.create()
    yield layout
    os.umask(before)


def test_only_the_owner_reads_secrets_which_stay_for_the_life_of_a_home(
    layout: Layout, tmp_path: Path
) -> None:
    load_secrets(layout)
    new_password(layout)
    for path in (layout.secrets, layout.passwords):
        assert path.stat().st_mode & 0o777 == 0o600
    assert load_secrets(layout) == load_secrets(layout)
    other = Layout(Home(tmp_path / "other"))
    other.create()
    mine, theirs = load_secrets(layout).model_dump(), load_secrets(other).model_dump()
    assert set(mine.values()).isdisjoint(theirs.values())


def test_a_new_password_replaces_the_old_one(layout: Layout) -> None:
    first = new_password(layout)
    assert read_password(layout) == first
    second = new_password(layout)
    assert second != first
    assert (json.loads(layout.passwords.read_text()), len(second)) == ({USER: second}, 20)


@pytest.mark.parametrize("text", [None, "{", "{}"])
def test_without_a_password_the_error_says_how_to_get_one(layout: Layout, text: str | None) -> None:
    if text is not None:
        layout.passwords.write_text(text)
    with pytest.raises(InfrastructureError, match="up --new-password"):
        read_password(layout)


def test_folders_are_closed_to_others_and_each_configuration_has_dag_files_of_its_own(
    layout: Layout, tmp_path: Path
) -> None:
    layout.create()
    assert layout.root.stat().st_mode & 0o777 == 0o700
    assert layout.root == tmp_path / "airflow"
    folders = [tmp_path / "a" / "config", tmp_path / "b" / "config"]
    places = {layout.stubs(folder) for folder in folders}
    assert (len(places), {place.parent for place in places}) == (2, {layout.dags})
