"""The API server's port stays the keeper's when the server ends."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from forebay.embedded.ports import LOOPBACK, keep_port

# What Airflow's command does: names host and port to uvicorn, and a module.
SERVER = """
import socket, sys
import uvicorn
from forebay.embedded.launch import accept_on

accept_on(socket.socket(fileno=int(sys.argv[1])))
uvicorn.run("answers:app", host="127.0.0.1", port=1, workers=1, log_level="warning")
"""
APP = """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"here"})
"""
ANOTHER_USER = """
import os, socket, sys

if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
with socket.socket() as taken:
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    taken.bind(("127.0.0.1", int(sys.argv[1])))
"""


@pytest.fixture
def kept() -> Iterator[socket.socket]:
    with keep_port(None) as listening:
        yield listening


def start(folder: Path, kept: socket.socket, app: str = APP) -> subprocess.Popen[bytes]:
    (folder / "answers.py").write_text(app)
    number = kept.fileno()
    return subprocess.Popen(
        [sys.executable, "-c", SERVER, str(number)],
        pass_fds=[number],
        env={**os.environ, "PYTHONPATH": str(folder)},
    )


def port_of(kept: socket.socket) -> int:
    port: int = kept.getsockname()[1]
    return port


@pytest.mark.guarantee(
    "the port of `forebay up`, while its API server restarts",
    "nobody else can listen there; requests wait",
)
def test_nobody_else_has_the_port_when_the_server_ends(tmp_path: Path, kept: socket.socket) -> None:
    url = f"http://{LOOPBACK}:{port_of(kept)}/"
    for _ in range(2):
        server = start(tmp_path, kept)
        try:
            # It is asked before it listens: what comes early waits.
            assert httpx.get(url, timeout=60, trust_env=False).text == "here"
        finally:
            server.kill()
            server.wait(10)
        done = subprocess.run(
            [sys.executable, "-c", ANOTHER_USER, str(port_of(kept))],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "Address already in use" in done.stderr
