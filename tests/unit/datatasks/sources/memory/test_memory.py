"""The kind `memory`: what it reports of tables that are missing, or not as declared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from support.stages import memory_source

from forebay.datatasks.planning.open_source import open_source
from forebay.datatasks.sources.common.contract.base import Source
from forebay.datatasks.sources.memory.source import MEMORY


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Source]:
    yield open_source(memory_source("a"), tmp_path)
    MEMORY.clear()


def test_a_table_that_is_not_there(opened: Source) -> None:
    (finding,) = opened.findings()
    assert (finding.path, finding.code) == (("options",), "nothing-matched")
    assert "MEMORY has no table 'a'" in finding.message
    described = opened.describe()
    assert (described.columns, described.empty_reason) == ({}, finding.message)


def test_columns_that_are_not_as_declared(opened: Source) -> None:
    MEMORY["a"] = pa.table(
        {"at": pa.array([], pa.timestamp("us", "UTC")), "n": pa.array([], pa.string())}
    )
    (finding,) = opened.findings()
    assert (finding.path, finding.code) == (("columns", "n"), "column-type")
    assert opened.describe().newest is None
