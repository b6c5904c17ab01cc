"""Another user of the machine beside a job: no file of it opens, and no socket answers."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.data_path import DataPath
from support.other_user import reached_by_another_user
from support.strangers import serving_history, sockets_of


@pytest.fixture
def root() -> Iterator[Path]:
    """A folder that everybody may enter, unlike those of pytest."""
    made = Path(tempfile.mkdtemp(prefix="fb-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def path(root: Path) -> Iterator[DataPath]:
    with serving_history(root) as made:
        yield made


def test_another_user_reaches_nothing_of_a_job(root: Path, path: DataPath) -> None:
    everything = [path.job_dir, *path.job_dir.rglob("*")]
    sockets = sockets_of(path.job_dir)
    assert [each.name.split(".")[0] for each in sockets] == ["data-0", "driver-0"]
    assert set(sockets) < set(everything)
    assert reached_by_another_user(root, everything) == []
    others, server = root / "for-everybody", root / "server"
    others.write_text("whoever looks finds it")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(server))
        listening.listen()
        server.chmod(0o777)
        reached = reached_by_another_user(root, [others, server])
    assert reached == [f"open {others}", f"connect {server}"]


def test_another_user_cannot_listen_where_a_role_died(root: Path, path: DataPath) -> None:
    """A port could be taken: callers came back and showed their token to whoever was there."""
    (driver,) = sockets_of(path.job_dir, "driver")
    path.processes["driver-0"].kill()
    path.processes["driver-0"].wait(5)
    assert reached_by_another_user(root, [driver, driver.with_name("driver-1")]) == []
    driver.unlink()
    assert reached_by_another_user(root, [driver]) == []
    path.start("driver")
    assert path.status().incarnation == 2


def test_a_job_has_no_network_connection(path: DataPath) -> None:
    for process in path.processes.values():
        assert psutil.Process(process.pid).net_connections("inet") == []
        # As the kernel itself says it, in each network namespace that a process could be in.
        inodes = {str(each.readlink()) for each in Path(f"/proc/{process.pid}/fd").iterdir()}
        for table in ("tcp", "tcp6", "udp", "udp6"):
            lines = Path(f"/proc/{process.pid}/net/{table}").read_text().splitlines()[1:]
            assert not {f"socket:[{line.split()[9]}]" for line in lines} & inodes
