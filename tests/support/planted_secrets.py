"""Secrets that tests plant in environments, and the search for them in all that was written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

from sqlalchemy import create_engine, inspect, text


def in_address(password: str, address: str, driver: str = "") -> str:
    """An address of the test's PostgreSQL with a password, which the server does not ask for."""
    with_password = address.replace("://forebay@", f"://forebay:{quote(password, safe='')}@")
    return with_password.replace("postgresql:", f"postgresql{driver}:")


def nobody(address: str) -> str:
    return re.sub(r"host=[^&]*", "host=/tmp/nobody-answers-here", address)


def forms(secret: str) -> set[bytes]:
    texts = {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)}
    return {each.encode() for each in texts | {json.dumps(secret)[1:-1], repr(secret)[1:-1]}}


class SecretSearch:
    def __init__(self, secrets: Iterable[str]) -> None:
        self._forms = sorted({form for secret in secrets for form in forms(secret)})

    def found_in(self, where: str, content: bytes) -> list[str]:
        found = []
        for form in self._forms:
            at = content.find(form)
            while at >= 0:
                found.append(f"{where}: …{content[max(0, at - 60) : at + len(form)]!r}")
                at = content.find(form, at + 1)
        return found

    def found(self, written: Iterable[tuple[str, bytes]]) -> list[str]:
        return [leak for where, content in written for leak in self.found_in(where, content)]


def files_below(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file with its content; one that goes meanwhile is left out."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            try:
                yield str(path), path.read_bytes()
            except FileNotFoundError:
                continue


def rows_of(address: str) -> Iterator[tuple[str, bytes]]:
    engine = create_engine(address.replace("postgresql:", "postgresql+psycopg2:"))
    with engine.connect() as connection:
        for schema in ("forebay", "public"):
            for table in inspect(connection).get_table_names(schema=schema):
                for row in connection.execute(text(f'SELECT * FROM {schema}."{table}"')):
                    yield f"table {table}", repr(tuple(row)).encode()
    engine.dispose()
