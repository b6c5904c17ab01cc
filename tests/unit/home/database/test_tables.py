"""Changed tables have another format, which alone decides that a home of before is refused."""

from __future__ import annotations

from hashlib import sha256

import pytest
from sqlalchemy import Dialect
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from forebay.home.database import tables

# Of the tables in this format. Whoever changes them raises `tables.FORMAT`, or a home of before is
# taken for one of now, and each command ends with an error about a column.
KNOWN_FORMAT = "10"
KNOWN = {"postgresql": "6590163401a200a7", "sqlite": "524cb28d2b6ca3ac"}


@pytest.mark.parametrize(
    "dialect", [postgresql.dialect(), sqlite.dialect()], ids=lambda it: it.name
)
def test_tables_that_change_have_another_format(dialect: Dialect) -> None:
    """Their columns, types, keys and indexes, as both databases are told to make them."""
    made = [CreateTable(table) for table in tables.METADATA.sorted_tables]
    made += [
        CreateIndex(index)
        for table in tables.METADATA.sorted_tables
        for index in sorted(table.indexes, key=lambda each: str(each.name))
    ]
    told = "\n".join(str(each.compile(dialect=dialect)) for each in made)
    found = sha256(told.encode()).hexdigest()[:16]
    assert (tables.FORMAT, found) == (KNOWN_FORMAT, KNOWN[dialect.name])
