"""Refusals of a bucket and wrong addresses: named, with what to do, in bounded time."""

from __future__ import annotations

import gc
import io
import socket
import sys
import time
from contextlib import suppress
from errno import ENOSPC
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from threading import Event

import pytest
from support.s3_server import answering_server, refusing_server, s3_url, silent_server
from support.stored_trees import NEVER, NEVER_A_TREE, make_tree, read_tree

from forebay.errors import ConfigError, InfrastructureError, MissingExtraError
from forebay.home.paths import Home
from forebay.home.store import s3_client
from forebay.home.store.base import Store
from forebay.home.store.open import store_of
from forebay.home.store.s3_address import s3_address
from forebay.home.store.s3_transfers import S3Transfers

# Several times what the client reads at once.
OBJECT_BYTES = 4 << 20


@pytest.mark.usefixtures("s3_access")
class TestS3Refuses:
    """A server that does not do what it is asked: named, with the way out, in bounded time."""

    @pytest.fixture(autouse=True)
    def impatient(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.patch = tmp_path, monkeypatch
        monkeypatch.setattr(s3_client, "ATTEMPTS", 2)
        monkeypatch.setattr(s3_client, "READ_SECONDS", 0.5)

    def store_at(self, url: str) -> Store:
        self.patch.setenv("FOREBAY_STORE", url)
        return store_of(Home(self.folder / "home"))

    @pytest.mark.parametrize(
        ("status", "code", "way_out"),
        [
            (403, "AccessDenied", "AWS_ACCESS_KEY_ID"),
            (403, "SignatureDoesNotMatch", "AWS_ACCESS_KEY_ID"),
            (404, "NoSuchBucket", "create the bucket, or correct FOREBAY_STORE"),
            (500, "InternalError", "check the server"),
            (503, "SlowDown", "overloaded, run again"),
            (507, "XMinioStorageFull", "free some space and run again"),
            (400, "QuotaExceeded", "free some space"),
        ],
    )
    def test_what_it_refuses_is_named(self, status: int, code: str, way_out: str) -> None:
        with refusing_server(status, code) as endpoint:
            self.check(endpoint, rf"s3://bucket/.*{code}.*{way_out}")

    def test_a_server_of_another_kind_is_named(self) -> None:
        with (
            refusing_server(200, "", b"<html>Welcome") as endpoint,
            pytest.raises(InfrastructureError, match=r"refused .*check the server"),
        ):
            list(self.store_at(s3_url(endpoint)).names())

    def test_a_server_that_is_not_there_is_named(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as closed:
            endpoint = f"127.0.0.1:{closed.getsockname()[1]}"
        self.check(endpoint, "cannot be reached .*correct FOREBAY_STORE")

    def test_a_silent_server_is_no_wait_for_ever(self) -> None:
        with silent_server() as endpoint:
            self.check(endpoint, "cannot be reached .*[Tt]imeout")

    def test_a_refusal_that_stops_coming_is_named(self) -> None:
        over = Event()

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
            handler.send_response(403)
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
            handler.wfile.write(b"<Error>")
            over.wait(60)

        with answering_server(answer) as endpoint:
            self.check(endpoint, "cannot be reached .*timed? ?out")
            over.set()

    def check(self, endpoint: str, says: str) -> None:
        store = self.store_at(s3_url(endpoint))
        source = make_tree(self.folder / "source")
        before = read_tree(source)
        for call in (
            lambda: store.put("f", "x", b"content"),
            lambda: store.put_tree("f", "x", source),
            lambda: store.path(NEVER),
            lambda: store.tree(NEVER_A_TREE),
            lambda: list(store.names()),
            lambda: store.remove([NEVER.name]),
        ):
            began = time.monotonic()
            with pytest.raises(InfrastructureError, match=says):
                call()
            assert time.monotonic() - began < 20
        assert read_tree(source) == before

    def test_an_endpoint_of_the_environment_that_is_none_is_named(self) -> None:
        self.patch.setenv("AWS_ENDPOINT_URL", "nonsense")
        with pytest.raises(ConfigError, match=r"FOREBAY_STORE, or an AWS_.*nonsense"):
            self.store_at("s3://bucket/endpoint").put("f", "x", b"1")

    def test_missing_credentials_are_named(self) -> None:
        self.patch.delenv("AWS_ACCESS_KEY_ID")
        self.patch.delenv("AWS_SECRET_ACCESS_KEY")
        with pytest.raises(InfrastructureError, match=r"s3://bucket/.* set AWS_ACCESS_KEY_ID"):
            self.store_at("s3://bucket/without").put("f", "x", b"1")


class FullDisk(io.BytesIO):
    """Takes nothing. full: set once it has said so."""

    def __init__(self) -> None:
        super().__init__()
        self.full = Event()

    def write(self, _: object) -> int:
        self.full.set()
        raise OSError(ENOSPC, "No space left on device")


@pytest.mark.usefixtures("s3_access")
def test_what_is_no_longer_wanted_is_not_read_on() -> None:
    """The disk is full while an object comes: its connection is closed, and nobody waits for it."""
    target, closed = FullDisk(), Event()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(206)
        handler.send_header("Content-Range", f"bytes 0-{OBJECT_BYTES - 1}/{OBJECT_BYTES}")
        handler.send_header("Content-Length", str(OBJECT_BYTES))
        handler.end_headers()
        handler.wfile.write(bytes(OBJECT_BYTES // 2))
        target.full.wait(30)
        time.sleep(0.5)  # until the client has made up its mind
        with suppress(BrokenPipeError, ConnectionResetError):
            handler.wfile.write(bytes(OBJECT_BYTES // 4))
            handler.connection.settimeout(30)
            handler.rfile.read(1)
        closed.set()

    gc.disable()
    try:
        with answering_server(answer) as endpoint:
            address = s3_address(s3_url(endpoint))
            transfers = S3Transfers(s3_client.client_of(address), address)
            with pytest.raises(OSError, match="No space left"):
                transfers.download([("x", target)])
            assert closed.wait(10)
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("gs://bucket/folder", "such as s3://BUCKET/FOLDER"),
        ("relative/folder", "the absolute path of a folder"),
        ("s3://", "correct the bucket"),
        ("s3:/bucket", "correct the bucket"),
        ("s3://b/f?endpoint=h", "correct the bucket"),
        ("s3://bucket/f?endpoint=h", "no parameter 'endpoint', only endpoint_override"),
        ("s3://bucket/f?nonsense", "expected an address such as s3://BUCKET/FOLDER"),
        ("s3://bucket/f?scheme=http", "only valid with endpoint_override"),
        ("s3://bucket/f?endpoint_override=h&scheme=ftp", "scheme must be http or https"),
        ("s3://bucket/f?endpoint_override=u:p%40h", "must be HOST or HOST:PORT"),
        ("s3://bucket/f?endpoint_override=h:port", "must be HOST or HOST:PORT"),
        ("s3://bucket/a//b", "must not contain //"),
        ("s3://user:hunter2@bucket/f", "must not contain a user and a password: set AWS_"),
        ("https://user:hunter2@host/bucket", "expected the absolute path"),
        ("s3://[bad/f", "expected an address"),
    ],
)
@pytest.mark.usefixtures("s3_access")
def test_what_is_no_store_is_refused_unseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str, says: str
) -> None:
    monkeypatch.setenv("FOREBAY_STORE", address)
    with pytest.raises(ConfigError, match=says) as raised:
        store_of(Home(tmp_path)).put("f", "x", b"1")
    assert "FOREBAY_STORE" in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_a_bucket_needs_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    monkeypatch.setenv("FOREBAY_STORE", "s3://bucket/folder")
    with pytest.raises(MissingExtraError, match=r"pip install 'forebay\[s3\]'.* has no boto3"):
        store_of(Home(tmp_path))
