"""Ports, bounded logs, where files are."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from forebay.embedded.layout import Layout
from forebay.embedded.log_files import PARSER_LOG_DAYS, drop_parser_logs, rotate
from forebay.embedded.ports import LOOPBACK, free_ports, keep_port
from forebay.home.paths import Home


def test_a_port_is_kept_while_it_is_free() -> None:
    ports = free_ports(0)
    assert free_ports(*ports) == ports


def test_a_taken_port_is_replaced() -> None:
    with socket.create_server((LOOPBACK, 0)) as taken:
        port = taken.getsockname()[1]
        assert free_ports(port) != [port]
    assert free_ports(port) == [port]


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


def test_folders_are_closed_to_others(tmp_path: Path) -> None:
    layout = Layout(Home(tmp_path / "home"))
    before = os.umask(0)
    try:
        layout.create()
    finally:
        os.umask(before)
    assert layout.root.stat().st_mode & 0o777 == 0o700
    assert layout.root == tmp_path / "home" / "airflow"


def test_each_configuration_folder_has_dag_files_of_its_own(tmp_path: Path) -> None:
    layout = Layout(Home(tmp_path))
    folders = [tmp_path / "a" / "config", tmp_path / "b" / "config"]
    places = {layout.stubs(folder) for folder in folders}
    assert (len(places), {place.parent for place in places}) == (2, {layout.dags})


@pytest.mark.parametrize("times", [1, 2])
def test_making_folders_again_changes_nothing(tmp_path: Path, times: int) -> None:
    layout = Layout(Home(tmp_path))
    for _ in range(times):
        layout.create()
    assert layout.log("any").parent.is_dir()
