"""Catalogs: relative addresses start at the project; one that never answers is an error in time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from pydantic import ValidationError
from support.iceberg_tables import CATALOG, TABLE, append

from forebay.datatasks.sources.iceberg import table as iceberg_table
from forebay.datatasks.sources.iceberg.kind import IcebergKind
from forebay.datatasks.sources.iceberg.table import IcebergTable, NoTableError, resolved
from forebay.errors import InfrastructureError


@pytest.mark.parametrize("name", ["100%20", "p%q", "p?q", "p#q", "p q", "\u00fc"])
def test_a_relative_catalog_below_a_folder_of_any_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    root = tmp_path / name
    root.mkdir()
    monkeypatch.chdir(root)  # the writer's address is read by SQLAlchemy alone
    append(Path(), pa.table({"id": [1, 2]}))
    table = IcebergTable(CATALOG, TABLE, root)
    assert table.load().metadata.current_snapshot() is not None
    table.close()


def test_addresses_that_are_absolute_or_of_others_stay(tmp_path: Path) -> None:
    same = {"uri": "sqlite:////srv/a%20b.db?mode=ro", "other": "https://a/b%20c", "at": "file:///x"}
    assert resolved(same, tmp_path) == same
    with pytest.raises(NoTableError, match=r"there is no catalog file .*/no.db"):
        IcebergTable({"type": "sql", "uri": "sqlite:///no.db"}, TABLE, tmp_path).load()


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


@pytest.mark.parametrize("name", ["/nowhere", "clicks", "shop.", ".clicks"])
def test_a_name_of_no_table_is_refused_where_it_is_declared(name: str) -> None:
    """A table without a namespace was pyiceberg's error, at the first look."""
    with pytest.raises(ValidationError, match=r"names no table: write one like shop\.clicks"):
        IcebergKind.Options(catalog={"type": "sql"}, table=name)
