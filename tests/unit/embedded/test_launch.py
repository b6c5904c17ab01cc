"""The API server keeps its port when it ends; what forks tasks has imported what they import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from support.dag_parse import own_airflow

from forebay.embedded import launch
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


@pytest.mark.guarantee(
    "the port of `forebay up`, while its API server restarts",
    "nobody else can listen there; requests wait",
)
def test_nobody_else_has_the_port_when_the_server_ends(tmp_path: Path) -> None:
    (tmp_path / "answers.py").write_text(APP)
    with keep_port(None) as kept:
        number, port = kept.fileno(), str(kept.getsockname()[1])
        serve, another = ([sys.executable, "-c", code] for code in (SERVER, ANOTHER_USER))
        found = {**os.environ, "PYTHONPATH": str(tmp_path)}
        for _ in range(2):
            with subprocess.Popen([*serve, str(number)], pass_fds=[number], env=found) as server:
                # It is asked before it listens: what comes early waits.
                try:
                    said = httpx.get(f"http://{LOOPBACK}:{port}/", timeout=60, trust_env=False)
                finally:
                    server.kill()
            assert said.text == "here"
            done = subprocess.run([*another, port], capture_output=True, text=True, check=False)
            assert "Address already in use" in done.stderr


BECOMES = """
import runpy, sys
from forebay.embedded import launch

runpy.run_module = lambda *_, **__: print(launch.IMPORTED_BY_TASKS in sys.modules)
launch.main(["--in-process", "--", sys.argv[1]])
"""


@pytest.mark.parametrize(("component", "imported"), [("scheduler", "True"), ("triggerer", "False")])
def test_what_forks_tasks_has_imported_what_they_import(
    component: str, imported: str, tmp_path: Path
) -> None:
    """Ten tasks of each window imported it anew: more than half of their CPU time."""
    found = {**own_airflow(tmp_path), launch.KEEPER_PID_NAME: str(os.getpid())}
    command = [sys.executable, "-c", BECOMES, component]
    done = subprocess.run(command, env=found, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == imported
