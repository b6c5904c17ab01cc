"""Options of storage systems whose clients would misread a value, or find out when they connect."""

from __future__ import annotations

from pathlib import Path

import pytest

from forebay.config.load import load_project
from forebay.config.yaml.problems import Problem
from forebay.datatasks.sources.common.contract.option_types import StorageOptions


def problems(tmp_path: Path, kind: str, options: str, **environ: str) -> list[Problem]:
    folder = tmp_path / "config" / "sources"
    folder.mkdir(parents=True, exist_ok=True)
    columns = "columns: {id: int, at: timestamp}\nevent_time: at\n"
    (folder / "s.yaml").write_text(f"kind: {kind}\noptions:\n{options}{columns}")
    return load_project(tmp_path / "config", environ).problems


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("anon: maybe", "options.storage.anon: true or false is expected, not 'maybe'"),
        ("anon: 2", "options.storage.anon: true or false is expected"),
        ("use_ssl: []", "options.storage.use_ssl: true or false is expected, not a list"),
        ("key: 5", "options.storage.key: text is expected, not 5"),
        ("secret: ''", "options.storage.secret: the text is empty"),
        ("endpoint_url: localhost:9000", "'localhost:9000' has no scheme"),
        ("endpoint_url: //localhost", "has no scheme"),
        ("client_kwargs: {a: b}", "options.storage.client_kwargs:"),
    ],
)
def test_options_of_a_bucket(tmp_path: Path, written: str, says: str) -> None:
    options = f"  path: s3://bucket/clicks\n  storage:\n    {written}\n"
    (found,) = problems(tmp_path, "parquet", options)
    assert found.line == 5
    assert says in found.message


def test_what_is_true_of_a_bucket_may_come_from_the_environment(tmp_path: Path) -> None:
    options = "  path: s3://bucket/clicks\n  storage: {anon: '${ANON:-false}', blocks: 5}\n"
    assert problems(tmp_path, "parquet", options) == []
    assert problems(tmp_path, "parquet", options, ANON="yes") == []
    (found,) = problems(tmp_path, "parquet", options, ANON="perhaps")
    assert "true or false is expected, not ${ANON:-false}" in found.message
    given = StorageOptions.model_validate({"anon": "false", "blocks": 5})
    assert given.model_dump(exclude_none=True) == {"anon": False, "blocks": 5}


@pytest.mark.parametrize("uri", ["nonsense", "localhost:8181", "7", "sqlite"])
def test_an_address_of_a_catalog(tmp_path: Path, uri: str) -> None:
    (found,) = problems(tmp_path, "iceberg", f"  table: a.b\n  catalog: {{uri: {uri}}}\n")
    assert (found.line, found.code) == (4, "wrong-value")
    assert f"'{uri}' has no scheme" in found.message
