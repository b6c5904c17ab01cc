"""Signs of life of Airflow's components: their heartbeats, and answers of the API server.

A component is never killed because nothing is known about it (the database is unavailable, the API
server is starting). Heartbeats are compared only with each other: wall clocks may jump.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from forebay.embedded.airflow import components as parts
from forebay.embedded.airflow.http import send
from forebay.embedded.postgres.place import Place
from forebay.embedded.postgres.server import answers
from forebay.errors import InfrastructureError
from forebay.system.liveness import Pulse

if TYPE_CHECKING:
    import httpx

LOOK_SECONDS = 10.0
# A component has at least this long until its first sign of life: a start may take minutes if other
# programs are busy too.
STARTING_SECONDS = 300.0
_REQUEST_SECONDS = 10.0
# An older look is ignored: a look takes at most two requests, and the next one follows soon.
FRESH_SECONDS = LOOK_SECONDS + 3 * _REQUEST_SECONDS
_LOG = logging.getLogger(__name__)


class Look(NamedTuple):
    """What one look found.

    at: seconds of the keeper's steady clock. answers: how often the API server has answered so far;
    None if the database does not answer, without which it cannot. report: Airflow's own on its
    components; None if there was none.
    """

    at: float
    answers: int | None
    report: Mapping[str, Any] | None

    def sign(self, name: str) -> str | None:
        """A value that changes while a component is alive; None if nothing is known about it."""
        if name == parts.API_SERVER:
            return None if self.answers is None else str(self.answers)
        if self.report is None or parts.component_health(self.report)[parts.DATABASE] != "healthy":
            return None
        return str(parts.last_beat(self.report, name))


class ComponentSigns:
    """The pulse of one component, from looks."""

    def __init__(
        self,
        name: str,
        newest: Callable[[], Look | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`newest` returns the newest look, if any; `clock` is the clock of its time."""
        self._name = name
        self._newest = newest
        self._clock = clock
        self._beats = 0
        self.forget()

    def forget(self) -> None:
        """A component is about to start: discard what an earlier process showed."""
        self._sign: str | None = None
        self._lives = False
        self._started_at = self._clock()

    def read(self) -> Pulse | None:
        """A beat for every change, and while nothing is known; None before the first change."""
        look = self._newest()
        sign = look.sign(self._name) if look is not None and self._tells(look) else None
        if sign is None:
            self._beats += 1
            return Pulse(self._beats, 0.0, "")
        if sign != self._sign:
            # The first one may come from the previous process.
            self._lives = self._sign is not None
            self._sign = sign
            self._beats += 1
        return Pulse(self._beats, 0.0, "") if self._lives else None

    def _tells(self, look: Look) -> bool:
        return look.at > self._started_at and self._clock() - look.at <= FRESH_SECONDS


class Heartbeats:
    """Looks repeatedly, in a thread of its own: an answer may take long."""

    def __init__(self, url: str, place: Place) -> None:
        self._url = url
        self._place = place
        self._answers = 0
        self._newest: Look | None = None
        threading.Thread(target=self._run, name="heartbeats", daemon=True).start()

    def signs(self, name: str) -> ComponentSigns:
        """The pulse of one component, from now on."""
        return ComponentSigns(name, lambda: self._newest)

    def _run(self) -> None:
        while True:
            up = answers(self._place, _REQUEST_SECONDS)
            report = self._report() if up else None
            self._newest = Look(time.monotonic(), self._answers if up else None, report)
            time.sleep(LOOK_SECONDS)

    def _report(self) -> Mapping[str, Any] | None:
        """Airflow's report, which needs its database; otherwise any sign of life of its server."""
        answer = self._answer("/api/v2/monitor/health") or self._answer("/api/v2/version")
        if answer is None:
            return None
        self._answers += 1
        try:
            found = answer.json()
        except ValueError:  # an error text: it is alive, but says nothing about the others
            return None
        return found if answer.is_success and "scheduler" in found else None

    def _answer(self, path: str) -> httpx.Response | None:
        try:
            return send("GET", self._url, path, _REQUEST_SECONDS)
        except InfrastructureError as error:
            _LOG.debug("%s: %s", path, error)
            return None
