"""Sockets of a job: found by address alone, at any depth, and only in the user's own folder."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import closing
from pathlib import Path

import pytest

from forebay.errors import InfrastructureError
from forebay.executors.link.sockets import JobSocket, dial, listen
from forebay.executors.link.tokens import bearer, is_allowed, new_token


def path_of(end: JobSocket) -> str:
    return end.grpc_target.removeprefix("unix:")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_caller_meets_its_server_however_deep_the_folder_is(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a-folder-with-a-long-name"] * 8)
    deep.mkdir(parents=True)
    deep /= "sockets"
    with closing(listen(deep, "driver", 0)) as here, socket.socket(socket.AF_UNIX) as server:
        server.bind(path_of(here))
        server.listen()
        assert len(str(deep)) > 200
        assert len(path_of(here)) < 100
        assert here.flight_location == f"grpc+unix://{path_of(here)}"
        with closing(dial(deep, here.address)) as there, socket.socket(socket.AF_UNIX) as client:
            client.connect(path_of(there))
            assert (there.address, there.token) == (here.address, here.token)
    assert not deep.stat().st_mode & 0o077


def test_who_starts_again_has_another_address_and_another_token(tmp_path: Path) -> None:
    first, other = listen(tmp_path, "data", 0), listen(tmp_path, "data", 1)
    again = listen(tmp_path, "data", 0)
    assert len({each.address for each in (first, other, again)}) == 3
    assert len({each.token for each in (first, other, again)}) == 3
    with pytest.raises(FileNotFoundError):
        dial(tmp_path, first.address)
    for each in (other, again):
        with closing(dial(tmp_path, each.address)) as found:
            assert found.token == each.token
    tokens = [f"{each.address.removeprefix('unix:')}.token" for each in (other, again)]
    assert names(tmp_path) == sorted(tokens)
    for each in (first, other, again):
        each.close()


def test_a_socket_is_closed_once(tmp_path: Path) -> None:
    made = listen(tmp_path, "data", 0)
    made.close()
    with Path(os.devnull).open() as next_one:  # it may have the same number
        made.close()
        assert os.fstat(next_one.fileno())


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o750, 0o755, 0o777])
def test_a_folder_that_others_may_enter_is_refused(tmp_path: Path, mode: int) -> None:
    made = listen(tmp_path, "driver", 0)
    made.close()
    (tmp_path).chmod(mode)
    refused = f"only user {os.geteuid()} may enter it"
    with pytest.raises(InfrastructureError, match=f"mode 0{mode:o}, but {refused}"):
        listen(tmp_path, "driver", 0)
    with pytest.raises(InfrastructureError, match=refused):
        dial(tmp_path, made.address)


def test_a_folder_of_another_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = listen(tmp_path, "driver", 0)
    made.close()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(InfrastructureError, match=f"belongs to user {os.getuid()}"):
        listen(tmp_path, "driver", 0)
    with pytest.raises(InfrastructureError, match=f"belongs to user {os.getuid()}"):
        dial(tmp_path, made.address)


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    planted = tmp_path / "sockets"
    planted.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InfrastructureError, match="sockets"):
        listen(planted, "driver", 0)
    with pytest.raises(OSError, match="sockets") as raised:
        dial(planted, "unix:driver-0.0123456789abcdef")
    assert raised.value.errno in {errno.ELOOP, errno.ENOTDIR}
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_planted_token_is_not_followed(tmp_path: Path) -> None:
    made = listen(tmp_path, "driver", 0)
    made.close()
    (token,) = (tmp_path).iterdir()
    token.rename(tmp_path / "token")
    token.symlink_to(tmp_path / "token")
    with pytest.raises(OSError, match="token"):
        dial(tmp_path, made.address)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "127.0.0.1:80",
        "driver-0.0123456789abcdef",
        "unix:/tmp/driver-0.0123456789abcdef",
        "unix:../driver-0.0123456789abcdef",
        "unix:driver-0.0123456789abcdef\n",
        "unix:driver-0.0123456789abcdef.token",
        "unix:driver-0.0",
    ],
)
def test_what_is_no_address_leads_nowhere(tmp_path: Path, address: str) -> None:
    with pytest.raises(InfrastructureError, match="is not an address"):
        dial(tmp_path, address)


def test_a_short_token_keeps_nobody_out(tmp_path: Path) -> None:
    made = listen(tmp_path, "driver", 0)
    made.close()
    (token,) = (tmp_path).iterdir()
    token.write_text("x" * 15)
    with pytest.raises(InfrastructureError, match="holds no token"):
        dial(tmp_path, made.address)


def test_a_disk_without_sockets_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class NoSocket(socket.socket):
        def bind(self, _path: object) -> None:
            raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(socket, "socket", NoSocket)
    with pytest.raises(InfrastructureError, match="put FOREBAY_HOME on a local file system"):
        listen(tmp_path, "driver", 0)


def test_only_the_whole_token_is_allowed() -> None:
    token = "a-long-and-secret-token"
    assert is_allowed(bearer(token), token)
    assert is_allowed(bearer(token).encode(), token)
    for wrong in (None, "", token, bearer(token) + "x", bearer(token)[:-1], "Basic " + token, "é"):
        assert not is_allowed(wrong, token)


def test_no_two_are_alike() -> None:
    assert len({new_token() for _ in range(100)}) == 100
