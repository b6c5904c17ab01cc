"""Texts of `forebay init`: names, quoting, and what had to be left out."""

from __future__ import annotations

from datetime import date

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from forebay.config.scaffold import (
    StoredColumn,
    declared_source,
    guessed_pipeline,
    source_name,
    usable,
    window_path,
)
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


DATA = {"path": "data"}
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=9)


@given(st.lists(NAMES, unique=True, min_size=1, max_size=4), st.text(min_size=1))
def test_any_column_name_survives(names: list[str], path: str) -> None:
    columns = [StoredColumn(name, "int64", ColumnType.INT) for name in names]
    left_out = [StoredColumn(name + "?", "map", None) for name in names]
    options = {"path": path, "window_path": "date={date}/*"}
    value = yaml.safe_load(declared_source("parquet", options, [*columns, *left_out]))
    assert value["options"] == options
    assert value["columns"] == dict.fromkeys(names, "int")


def test_the_types_of_a_stranger_s_file_write_no_line_of_yaml() -> None:
    kept = StoredColumn("id", "int64", ColumnType.INT)
    for text in ("struct<a\nkind: kafka\nx: int64>", "struct<a\rkind: b>", "struct<a\u2028k: b>"):
        left_out = StoredColumn("s", text, None)
        value = yaml.safe_load(declared_source("parquet", DATA, [kept, left_out]))
        assert value == {"kind": "parquet", "options": {"path": "data"}, "columns": {"id": "int"}}


def test_columns_without_a_type_or_a_name_of_their_own_are_listed() -> None:
    twice = StoredColumn("twice", "int64", ColumnType.INT)
    columns = [StoredColumn("at", "timestamp[us]", ColumnType.TIMESTAMP), twice, twice]
    text = declared_source("parquet", DATA, [*columns, StoredColumn("blob", "binary", None)])
    assert yaml.safe_load(text).items() >= {"columns": {"at": "timestamp"}}.items()
    assert "#   blob: binary" in text
    assert text.count("#   twice: int64") == 2
    # Where all can be declared nothing is said of the rest.
    assert "Left out" not in declared_source("parquet", DATA, columns[:1])


@pytest.mark.parametrize(
    ("folders", "pattern"),
    [
        ("dt=2026-03-01", "dt={date}/*"),
        ("eu/dt=20260301", "*/dt={date:%Y%m%d}/*"),
        ("year=2026/month=3/day=1", "year={year}/month={month}/day={day}/*"),
        ("2026/03/01/07", "{year}/{month}/{day}/{hour}/*"),
        ("date=2026-03-01/hour=7/a", "date={date}/hour={hour}/*/*"),
        ("2026-03-01-07", "{date:%Y-%m-%d-%H}/*"),
        *(("year=2026/month=3", None), ("a/b", None), ("", None), ("id=12/2026", None)),
        *(("{x}=2026-03-01", None), ("k[1]=2026-03-01", None), ("country=DE", None)),
    ],
)
def test_folders_that_name_a_time(folders: str, pattern: str | None) -> None:
    assert window_path(folders.split("/") if folders else [], "*") == pattern


def test_names_that_yaml_may_not_have_are_left_out() -> None:
    columns = [StoredColumn(name, "int64", ColumnType.INT) for name in ("a" * 200, "a" * 201, "\0")]
    assert [column.name for column in usable(columns)] == ["a" * 200]


def column(name: str, kind: ColumnType | None) -> StoredColumn:
    return StoredColumn(name, str(kind), kind)


def test_a_pipeline_is_guessed_by_names_and_types() -> None:
    columns = [
        column("user", ColumnType.STRING),
        column("id", ColumnType.INT),
        column("mobile", ColumnType.BOOL),
        column("is_clicked", ColumnType.INT),
        column("at", ColumnType.TIMESTAMP),
        column("no", ColumnType.FLOAT),
        column("blob", None),
    ]
    text = str(guessed_pipeline("clicks", columns, date(2026, 3, 1)))
    assert yaml.safe_load(text)["dataset"] == {
        "window": "1d",
        "start": date(2026, 3, 1),
        "event_id": "id",
        "label": {"column": "is_clicked"},
        "streams": {"clicks": {"sources": ["clicks"]}},
        "features": {
            "user": {"encode": "hash", "buckets": 10_000},
            "mobile": {"encode": "numeric"},
            "no": {"encode": "numeric"},
        },
    }
    ended = str(guessed_pipeline("clicks", columns, date(2026, 3, 1), date(2026, 3, 4)))
    assert yaml.safe_load(ended)["dataset"]["end"] == date(2026, 3, 4)
    assert "`end` is where the rows end" in ended
    without = [each for each in columns if each.name not in {"is_clicked", "mobile"}]
    assert guessed_pipeline("clicks", without, date(2026, 3, 1)) is None
