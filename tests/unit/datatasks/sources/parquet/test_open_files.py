"""Which Parquet file stays open between tasks, and that no other version of it is read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from forebay.datatasks.sources.parquet.open_files import FileKeeper, LastFile


class Storage:
    def __init__(self, root: Path) -> None:
        self.root, self.opened, self.closed = root, 0, 0

    @contextmanager
    def open(self, path: str) -> Iterator[Any]:
        self.opened += 1
        try:
            with (self.root / path).open("rb") as file:
                yield file
        finally:
            self.closed += 1


def _read_both(files: LastFile) -> None:
    files.open("a", "1")
    files.open("missing", "1")


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    for name, rows in (("a", 3), ("b", 5)):
        pq.write_table(pa.table({"n": range(rows)}), tmp_path / name)
    return Storage(tmp_path)


def test_the_next_task_finds_the_file_open(storage: Storage) -> None:
    keeper = FileKeeper(storage.open)
    for _ in range(3):
        with keeper.lent() as files:
            assert files.open("a", "7|mtime_ns=1").num_rows == 3
    assert (storage.opened, storage.closed) == (1, 0)
    keeper.close()
    assert storage.closed == 1


def test_another_file_or_version_takes_its_place(storage: Storage) -> None:
    keeper = FileKeeper(storage.open)
    wanted = [("a", "1"), ("b", "1"), ("b", "2"), ("a", "1")]
    for path, version in wanted:
        with keeper.lent() as files:
            files.open(path, version)
        assert storage.opened - storage.closed == 1
    assert storage.opened == len(wanted)
    keeper.close()
    assert storage.closed == len(wanted)


def test_a_file_of_no_known_version_is_open_for_one_task_alone(storage: Storage) -> None:
    keeper = FileKeeper(storage.open)
    for _ in range(2):
        with keeper.lent() as files:
            assert files.open("a", "") is files.open("a", "")
    assert (storage.opened, storage.closed) == (2, 2)


def test_what_a_task_that_failed_had_open_is_closed(storage: Storage) -> None:
    keeper = FileKeeper(storage.open)
    with pytest.raises(FileNotFoundError), keeper.lent() as files:
        _read_both(files)
    assert (storage.opened, storage.closed) == (2, 2)
    with keeper.lent() as files:
        files.open("a", "1")
    assert storage.opened == 3


def test_two_tasks_at_a_time_share_no_file(storage: Storage) -> None:
    keeper = FileKeeper(storage.open)
    with keeper.lent() as one, keeper.lent() as other:
        first, second = one.open("a", "1"), other.open("a", "1")
        assert first.file is not second.file
    assert (storage.opened, storage.closed) == (2, 1)
    keeper.close()
    assert storage.closed == 2
