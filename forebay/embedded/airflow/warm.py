"""Waits until the API server answers, and warms up what it builds on the first request."""

from __future__ import annotations

import logging
import threading
import time

from forebay.embedded.airflow.http import send
from forebay.errors import InfrastructureError

DEADLINE_SECONDS = 180.0
_ATTEMPT_SECONDS = 60.0
_PAUSE_SECONDS = 0.1
# The first shows that it is listening. The second is what tasks talk to: Airflow builds it on the
# first request to it, which takes longer than tasks wait.
_PATHS = ("/api/v2/version", "/execution/health")
_LOG = logging.getLogger(__name__)


class Warming:
    """Asks one API server until it has answered, in a thread of its own.

    answered: the API server is ready for tasks. given_up: set by whoever no longer waits for it.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self.answered = threading.Event()
        self.given_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="warm", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        for path in _PATHS:
            while not self._answers(path):
                if time.monotonic() > deadline or self.given_up.wait(_PAUSE_SECONDS):
                    return
        self.answered.set()

    def _answers(self, path: str) -> bool:
        try:
            answer = send("GET", self._url, path, _ATTEMPT_SECONDS)
        except InfrastructureError as error:
            _LOG.debug("%s: %s", path, error)
            return False
        return answer.is_success
