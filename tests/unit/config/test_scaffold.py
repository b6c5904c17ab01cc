"""Texts of `forebay init`: names, quoting, and what had to be left out."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from forebay.config.scaffold import StoredColumn, folder_source, source_name
from forebay.config.specs.sources import ColumnType
from forebay.system.names import is_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *(("clicks", "clicks"), ("clicks 2026.03", "clicks_2026_03"), ("a1", "a1")),
        *(("2026-03", "source_2026-03"), ("äöü", "source"), ("", "source"), ("a" * 70, "a" * 63)),
    ],
)
def test_source_names(text: str, name: str) -> None:
    assert source_name(text) == name


@given(st.text(max_size=100))
def test_every_source_name_is_allowed(text: str) -> None:
    assert is_name(source_name(text))


@given(
    st.lists(st.text(min_size=1, max_size=9), unique=True, min_size=1, max_size=4),
    st.text(min_size=1),
)
def test_any_column_name_survives(names: list[str], path: str) -> None:
    columns = [StoredColumn(name, "int64", ColumnType.INT) for name in names]
    left_out = [StoredColumn(name + "?", "map", None) for name in names]
    text = folder_source("parquet", path, [*columns, *left_out], "date={date}/*")
    value = yaml.safe_load(text)
    assert value["options"] == {"path": path, "window_path": "date={date}/*"}
    assert value["columns"] == dict.fromkeys(names, "int")


def test_the_types_of_a_stranger_s_file_write_no_line_of_yaml() -> None:
    kept = StoredColumn("id", "int64", ColumnType.INT)
    for text in ("struct<a\nkind: kafka\nx: int64>", "struct<a\rkind: b>", "struct<a\u2028k: b>"):
        left_out = StoredColumn("s", text, None)
        value = yaml.safe_load(folder_source("parquet", "data", [kept, left_out], None))
        assert value == {"kind": "parquet", "options": {"path": "data"}, "columns": {"id": "int"}}


def test_columns_without_a_type_or_a_name_of_their_own_are_listed() -> None:
    columns = [
        StoredColumn("a", "int64", ColumnType.INT),
        StoredColumn("at", "timestamp[us]", ColumnType.TIMESTAMP),
        StoredColumn("blob", "binary", None),
        StoredColumn("twice", "int64", ColumnType.INT),
        StoredColumn("twice", "int64", ColumnType.INT),
    ]
    text = folder_source("parquet", "data", columns, None)
    assert yaml.safe_load(text) == {
        "kind": "parquet",
        "options": {"path": "data"},
        "columns": {"a": "int", "at": "timestamp"},
        "event_time": "at",
    }
    assert "#   blob: binary" in text
    assert text.count("#   twice: int64") == 2


def test_where_all_can_be_declared_nothing_is_said_of_the_rest() -> None:
    text = folder_source("parquet", "data", [StoredColumn("a", "int64", ColumnType.INT)], None)
    assert "#" not in text.split("\n", 1)[1], "but for what editors read"
