"""A relative address of a catalog starts at the project, whatever its folder is called."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from support.iceberg_tables import CATALOG, TABLE, append

from forebay.datatasks.sources.iceberg.table import IcebergTable, NoTableError, resolved


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
