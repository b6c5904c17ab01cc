"""The wait for an API server that answers with errors before it is ready."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from forebay.embedded.airflow.warm import Warming

PATIENCE_SECONDS = 20.0


class Starting:
    """A server that is not ready at first; `codes` are its next answers, 200 later."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.codes: list[int] = []


@pytest.fixture
def starting() -> Starting:
    return Starting()


@pytest.fixture
def url(starting: Starting) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            starting.asked.append(self.path)
            self.send_response(starting.codes.pop(0) if starting.codes else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def wait_for(warming: Warming) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not warming.answered.is_set():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_errors_are_asked_again_until_both_parts_answer(url: str, starting: Starting) -> None:
    starting.codes = [503, 200, 404, 500]
    wait_for(Warming(url))
    version, execution = "/api/v2/version", "/execution/health"
    assert starting.asked == [version, version, execution, execution, execution]


def test_one_that_was_given_up_asks_no_more(starting: Starting) -> None:
    warming = Warming("http://127.0.0.1:1")
    warming.given_up.set()
    warming._thread.join(PATIENCE_SECONDS)
    assert not warming._thread.is_alive()
    assert not warming.answered.is_set()
