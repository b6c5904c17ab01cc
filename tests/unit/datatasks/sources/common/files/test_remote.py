"""Files at a URL: in a bucket of a real S3 server, and on a server that does not answer."""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.parquet_source import DAY, START, days, evenly, numbers, open_task, read, source, table
from support.s3_server import S3Server

from forebay.config.specs.windows import HOUR
from forebay.datatasks.sources.common.files.listing import Files
from forebay.errors import ConfigError, DataError, InfrastructureError, MissingExtraError
from forebay.testing.source_suite import tasks_of

NOWHERE = {"endpoint_url": "http://127.0.0.1:9"}
KEYS = {"key": "a", "secret": "b"}


def put(server: S3Server, bucket: str, day: int, rows: int) -> None:
    sink = BytesIO()
    pq.write_table(table(evenly(START + day * DAY, rows, HOUR), day * 100), sink)
    server.client.put_object(Bucket=bucket, Key=f"data/{day}.parquet", Body=sink.getvalue())


def files(storage: dict[str, Any], place: str = "s3://lake/clicks") -> Files:
    return Files(place, Path("/"), storage, (".parquet",))


def test_a_bucket_is_read_and_an_object_that_changed_is_not(
    tmp_path: Path, s3_server: S3Server, s3_access: None
) -> None:
    bucket = s3_server.new_bucket()
    storage = {"endpoint_url": f"http://{s3_server.endpoint}"}
    opened = source(tmp_path, {"path": f"s3://{bucket}/data", "storage": storage})
    for day in range(2):
        put(s3_server, bucket, day, 24)
    assert [numbers(read(opened, days(2), day)) for day in range(2)] == [
        list(range(24)),
        list(range(100, 124)),
    ]
    (task,) = tasks_of(opened.scan(days(1)), days(1), 0)
    put(s3_server, bucket, 0, 23)
    with pytest.raises(DataError, match=r"data/0\.parquet was changed after it was planned"):
        list(open_task(opened, task))


def test_a_server_that_is_not_there(s3_access: None) -> None:
    with pytest.raises(InfrastructureError, match="lake/clicks: Could not connect") as raised:
        files(NOWHERE | KEYS).listing()
    assert raised.value.exit_code == 4


@pytest.mark.parametrize(
    ("storage", "place", "says"),
    [
        ({"endpiont": "a"}, "s3://lake", r"options\.storage cannot be used: .*'endpiont'"),
        (KEYS, "s3://", "s3://: it names no bucket"),
        ({}, "no://lake", "no://lake: Protocol not known: no"),
    ],
)
def test_places_that_are_none(
    s3_access: None, storage: dict[str, str], place: str, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        files(storage, place).listing()


@pytest.mark.parametrize("name", ["loop", "file", "n" * 300])
def test_a_path_that_is_no_folder_is_wrong_and_not_the_machine(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=rf"{name}.*correct `path`"):
        Files(f"{name}/data/*", tmp_path, {}, (".parquet",)).listing()


def test_the_extra_is_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'forebay\[s3\]'.*has no s3fs"):
        files({}).listing()


def test_keys_that_a_disk_would_not_have(
    tmp_path: Path, s3_server: S3Server, s3_access: None
) -> None:
    """Every one is read under its own name, and none twice: in buckets no name is simplified."""
    bucket = s3_server.new_bucket()
    keys = ["data/a.parquet", "data//a.parquet", "data///a.parquet", "data/b//a.parquet"]
    keys += ["data/./a.parquet", "data/b/../a.parquet", "data/..a/a.parquet", "data/b//.a.parquet"]
    for number, key in enumerate(keys):
        sink = BytesIO()
        pq.write_table(table([START], number), sink)
        s3_server.client.put_object(Bucket=bucket, Key=key, Body=sink.getvalue())
    for marker in ("data/", "data/b/", "data/c.parquet/", "data//"):
        s3_server.client.put_object(Bucket=bucket, Key=marker, Body=b"")
    storage = {"endpoint_url": f"http://{s3_server.endpoint}"}
    opened = source(tmp_path, {"path": f"s3://{bucket}/data", "storage": storage})
    chunks = read(opened, days(1))
    assert sorted(numbers(chunks)) == [0, 1, 2, 3, 4, 5]  # the others are bookkeeping
    assert len({row for chunk in chunks for row in chunk.row_ids.tolist()}) == 6
    assert opened.findings() == []
    s3_server.client.put_object(Bucket=bucket, Key="data/d.parquet/", Body=b"rows")
    with pytest.raises(DataError, match=r"the first is .*/data/d\.parquet/ "):
        opened.scan(days(1))


@pytest.mark.parametrize("place", ["s3://b//x", "s3://b/x//", "s3://b/x//*.parquet"])
def test_a_place_that_would_be_simplified_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(ConfigError, match="// is part of the keys"):
        source(tmp_path, {"path": place})
