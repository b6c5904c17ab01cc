"""A REST catalog that takes requests and never answers, from the start or from the second on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from forebay.datatasks.sources.iceberg import table as iceberg_table
from forebay.datatasks.sources.iceberg.table import IcebergTable
from forebay.errors import InfrastructureError

SETTINGS = b'{"defaults": {}, "overrides": {}}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"


def serve(listening: socket.socket, answers: int) -> None:
    taken = []
    with suppress(OSError):  # closed by the test
        while True:
            taken.append(listening.accept()[0])
            taken[-1].recv(1 << 16)
            if len(taken) <= answers:
                taken[-1].sendall(ANSWER % (len(SETTINGS), SETTINGS))


@pytest.fixture(params=[0, 1])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        how = {"args": (listening, request.param), "daemon": True}
        threading.Thread(target=serve, **how).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.timeout(60)
@pytest.mark.parametrize("how", [{}, {"type": "rest"}, {"token": "not-one"}])
def test_it_is_an_error_in_time(
    address: str, how: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(iceberg_table, "ANSWER_SECONDS", 0.5)
    table = IcebergTable({"uri": address, **how}, "shop.history", tmp_path)
    with pytest.raises(InfrastructureError, match="timed out"):
        table.load()
