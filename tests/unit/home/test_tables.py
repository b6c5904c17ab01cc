"""Changed tables have another revision, which alone decides that an older home is refused."""

from __future__ import annotations

from hashlib import sha256

from sqlalchemy.schema import CreateIndex, CreateTable

from forebay.home import tables

# Of the tables of one revision. Whoever changes them raises `tables.REVISION`, or a home of before
# is taken for one of now, and each command ends with an error about a column.
KNOWN = ("0004", "3fca87f76a00a01b")


def test_tables_that_change_have_another_revision() -> None:
    made = [str(CreateTable(table)) for table in tables.METADATA.sorted_tables]
    made += [
        str(CreateIndex(index))
        for table in tables.METADATA.sorted_tables
        for index in sorted(table.indexes, key=lambda each: str(each.name))
    ]
    found = sha256("\n".join(made).encode()).hexdigest()[:16]
    assert (tables.REVISION, found) == KNOWN
