"""One real S3 server for the test session, buckets that no other test uses, and bad servers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import quote

import boto3
import pytest
from botocore.loaders import create_loader

# Keys on one page of a listing: few, so that some hundred objects are more than one page.
PAGE_KEYS = 100
_START_SECONDS = 60.0
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
# Of whoever runs the tests: none of it is for us.
_OTHERS = ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ROLE_ARN")
_NO_FILES = {"AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
_LOADER = create_loader()
# Whatever becomes of the tests, the kernel ends the server with them.
_SERVE = """
from forebay.system.processes.parent import die_with_parent
die_with_parent()
from moto.server import main
main(["-H", "127.0.0.1", "-p", "0"])
"""


@dataclass
class S3Server:
    """A server process with its objects in memory. log: what it says."""

    log: Path
    endpoint: str = field(default="", init=False)
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _SERVE],
                env=os.environ | {"MOTO_S3_DEFAULT_MAX_KEYS": str(PAGE_KEYS)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not (found := re.search(r"http://(127\.0\.0\.1:\d+)", self.log.read_text())):
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            assert time.monotonic() < deadline, "the S3 server did not start"
            time.sleep(0.05)
        self.endpoint = found[1]

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(30)

    @cached_property
    def client(self) -> Any:
        """A client that knows nothing of ours."""
        return boto3.session.Session().client(
            "s3",
            endpoint_url=f"http://{self.endpoint}",
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

    def new_bucket(self) -> str:
        name = f"test-{uuid.uuid4().hex[:12]}"
        self.client.create_bucket(Bucket=name)
        return name


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = S3Server(tmp_path_factory.mktemp("s3") / "server.log")
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def s3_access(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment holds credentials, and nothing of whoever runs the tests."""
    # What clients of this process read from many files, they read once.
    monkeypatch.setattr("botocore.session.create_loader", lambda *_: _LOADER)
    for name in _OTHERS:
        monkeypatch.delenv(name, raising=False)
    for name, value in {**_CREDENTIALS, **_NO_FILES}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def new_s3_address(s3_server: S3Server, s3_access: None) -> Callable[[], str]:
    return lambda: s3_url(s3_server.endpoint, s3_server.new_bucket())


def s3_url(endpoint: str, bucket: str = "bucket") -> str:
    where = quote(endpoint)
    return f"s3://{bucket}/some/folder?endpoint_override={where}&scheme=http&region=us-east-1"


@contextmanager
def refusing_server(status: int, code: str, body: bytes = b"") -> Iterator[str]:
    """Answers every request with an error, or with these bytes; its host and port."""
    body = body or f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode()

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)

    with answering_server(answer) as endpoint:
        yield endpoint


@contextmanager
def silent_server() -> Iterator[str]:
    over = Event()
    with answering_server(lambda _: over.wait(60)) as endpoint:
        yield endpoint
        over.set()


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A client that was refused once takes its other requests back."""


@contextmanager
def answering_server(answer: Callable[[BaseHTTPRequestHandler], object]) -> Iterator[str]:
    """Has this answer every request, each in a thread of its own; its host and port."""

    def log_nothing(*_: object) -> None:
        return

    methods = {f"do_{method}": answer for method in ("GET", "PUT", "POST", "HEAD", "DELETE")}
    handler = type("Handler", (BaseHTTPRequestHandler,), {**methods, "log_message": log_nothing})
    server = _QuietServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
