"""The client of Airflow's REST API against a server that imitates it."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from forebay.embedded.airflow.http import ApiError, ConflictError, Endpoint, NotFoundError
from forebay.embedded.airflow.rest import AirflowApi
from forebay.embedded.airflow.warm import Warming
from forebay.errors import InfrastructureError

FIRST = datetime(2026, 3, 1, 7, tzinfo=UTC)
Answer = tuple[int, Any]


class Played:
    """What the server was asked, and what it answers by method and path."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []
        self.logins = 0
        self.valid = ""
        self.answers: dict[str, Callable[[dict[str, list[str]]], Answer]] = {}
        self.pause = self.login_pause = 0.0

    def answer(self, method: str, target: str, body: Any, token: str) -> Answer:
        parts = urlsplit(target)
        if parts.path == "/auth/token":
            time.sleep(self.login_pause)
            self.logins += 1
            self.valid = f"token-{self.logins}"
            fine = body == {"username": "admin", "password": "right"}
            return (201, {"access_token": self.valid}) if fine else (401, {"detail": "no"})
        if token != f"Bearer {self.valid}":
            return 401, {"detail": "expired"}
        time.sleep(self.pause)
        self.asked.append((method, target, body))
        return self.answers[f"{method} {parts.path}"](parse_qs(parts.query))


@pytest.fixture
def played() -> Played:
    return Played()


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """A client that waited long enough has gone."""


@contextmanager
def served(answer: Callable[[str, str, Any, str], Answer]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            token = self.headers.get("Authorization", "")
            code, value = answer(self.command, self.path, body, token)
            content = value.encode() if isinstance(value, str) else json.dumps(value).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    for method in ("GET", "POST", "PATCH"):
        setattr(Handler, f"do_{method}", Handler.handle_any)
    with QuietServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def url(played: Played) -> Iterator[str]:
    with served(played.answer) as url:
        yield url


@pytest.fixture
def api(url: str) -> AirflowApi:
    return AirflowApi(Endpoint(url, "admin", "right"), timeout_seconds=5.0)


def test_one_login_serves_many_calls_until_its_token_expires(
    played: Played, api: AirflowApi
) -> None:
    played.answers["GET /api/v2/dags/ads"] = lambda _: (200, {"dag_id": "ads"})
    assert api.dag("ads") == api.dag("ads") == {"dag_id": "ads"}
    assert played.logins == 1
    played.valid = "another"
    api.dag("ads")
    assert played.logins == 2


def test_a_wrong_password_or_nobody_listening_is_told(url: str, played: Played) -> None:
    with pytest.raises(ApiError, match="401"):
        AirflowApi(Endpoint(url, "admin", "wrong")).dags()
    assert played.logins == 1
    with pytest.raises(InfrastructureError, match="does not answer"):
        AirflowApi(Endpoint("http://127.0.0.1:1", "admin", "right")).health()


def test_forms_say_what_they_mean(played: Played, api: AirflowApi) -> None:
    played.answers["POST /api/v2/backfills"] = lambda _: (200, {"id": 7})
    assert api.create_backfill("ads", FIRST, FIRST)["id"] == 7
    dates = dict.fromkeys(("from_date", "to_date"), "2026-03-01T07:00:00Z")
    form = {"dag_id": "ads", "reprocess_behavior": "none", "max_active_runs": 10}
    assert played.asked[-1][2] == dates | form
    answer = {"task_instances": [{"task_id": "sink"}]}
    played.answers["POST /api/v2/dags/ads/clearTaskInstances"] = lambda _: (200, answer)
    assert api.clear("ads", "r", ["sink"], downstream=True) == [{"task_id": "sink"}]
    flags = {"dry_run": False, "only_failed": False, "include_downstream": True}
    assert played.asked[-1][2] == flags | {"dag_run_id": "r", "task_ids": ["sink"]}
    api.clear("ads", "r")
    assert "task_ids" not in played.asked[-1][2]


def test_all_pages_are_read_and_a_list_that_shrinks_meanwhile_ends(
    played: Played, api: AirflowApi
) -> None:
    everything = [{"dag_id": f"d{number}"} for number in range(250)]

    def page(query: dict[str, list[str]]) -> Answer:
        first, limit = int(query["offset"][0]), int(query["limit"][0])
        return 200, {"dags": everything[first : first + limit], "total_entries": len(everything)}

    played.answers["GET /api/v2/dags"] = page
    assert (api.dags(), len(played.asked)) == (everything, 3)
    answer = {"dag_runs": [], "total_entries": 5}
    played.answers["GET /api/v2/dags/ads/dagRuns"] = lambda _: (200, answer)
    assert api.dag_runs("ads") == []
    assert "order_by=logical_date" in played.asked[-1][1]


@pytest.mark.parametrize(
    ("code", "answer", "kind"),
    [
        (404, {"detail": "no such thing"}, NotFoundError),
        (409, {"detail": "no such thing"}, ConflictError),
        (422, {"detail": "no such thing"}, ApiError),
        (502, "<html>bad gateway: no such thing</html>", ApiError),
        (502, '["no such thing"]', ApiError),
        (502, '{"other": "no such thing"}', ApiError),
    ],
)
def test_a_refusal_is_told_in_airflows_words(
    played: Played, api: AirflowApi, code: int, answer: Any, kind: type[ApiError]
) -> None:
    played.answers["GET /api/v2/dags/ads"] = lambda _: (code, answer)
    words = answer if isinstance(answer, str) else answer["detail"]
    with pytest.raises(kind, match=f"{code}.*{re.escape(words)}") as raised:
        api.dag("ads")
    assert (type(raised.value), raised.value.status) == (kind, code)


def test_what_else_is_asked(played: Played, api: AirflowApi) -> None:
    task = "/dags/ads/dagRuns/r/taskInstances/t"
    lines = [{"event": "first", "level": "info"}, {"event": "second"}, "third"]
    for asked, answer in {
        "PATCH /dags/ads": {},
        "PATCH /dags/ads/dagRuns/r": {},
        "POST /dags/ads/dagRuns": {"dag_run_id": "r"},
        f"GET {task}/xcomEntries/return_value": {"value": {"rows": 3}},
        f"GET {task}/links": {"extra_links": {"report": "http://x"}},
        f"GET {task}/logs/2": {"content": lines},
    }.items():
        played.answers[asked.replace(" ", " /api/v2")] = partial(
            lambda found, _: (200, found), answer
        )
    api.pause("ads", True)
    api.set_run_state("ads", "r", "failed")
    api.trigger("ads", FIRST, {"reprocess": True})
    assert [body for _, _, body in played.asked] == [
        {"is_paused": True},
        {"state": "failed"},
        {"logical_date": "2026-03-01T07:00:00Z", "conf": {"reprocess": True}},
    ]
    assert api.xcom("ads", "r", "t") == {"rows": 3}
    assert api.links("ads", "r", "t") == {"report": "http://x"}
    assert api.log("ads", "r", "t", 2) == ["first", "second", "third"]
    path = "/api/v2/dags/ads/dagRuns/manual__2026-03-01T07%3A00%2B00%3A00"
    played.answers[f"GET {path}"] = lambda _: (200, {"state": "success"})
    assert api.dag_run("ads", "manual__2026-03-01T07:00+00:00")["state"] == "success"


@pytest.mark.parametrize(
    ("part", "said"), [("pause", "forebay status"), ("login_pause", "timed out")]
)
def test_a_server_that_is_silent_has_a_deadline(
    url: str, played: Played, part: str, said: str
) -> None:
    played.answers["GET /api/v2/dags/ads"] = lambda _: (200, {})
    setattr(played, part, 3.0)
    began = time.monotonic()
    with pytest.raises(InfrastructureError, match=said):
        AirflowApi(Endpoint(url, "admin", "right"), timeout_seconds=0.2).dag("ads")
    assert time.monotonic() - began < 2.5


def test_a_proxy_of_the_environment_is_not_asked(
    played: Played, api: AirflowApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    played.answers["GET /api/v2/monitor/health"] = lambda _: (200, {"scheduler": None})
    assert api.health() == {"scheduler": None}


def test_a_time_without_zone_is_refused_and_the_password_not_printed(api: AirflowApi) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        api.trigger("ads", datetime(2026, 3, 1))  # noqa: DTZ001 - that is the point
    assert "right" not in repr(Endpoint("http://127.0.0.1:1", "admin", "right"))


def test_errors_of_a_server_that_starts_are_asked_again_until_both_parts_answer() -> None:
    asked, codes = [], [503, 200, 404, 500]

    def starting(_method: str, path: str, _body: Any, _token: str) -> Answer:
        asked.append(path)
        return codes.pop(0) if codes else 200, ""

    with served(starting) as url:
        assert Warming(url).answered.wait(20)
    version, execution = "/api/v2/version", "/execution/health"
    assert asked == [version, version, execution, execution, execution]


def test_a_server_that_was_given_up_is_asked_no_more() -> None:
    warming = Warming("http://127.0.0.1:1")
    warming.given_up.set()
    warming._thread.join(20)
    assert not warming._thread.is_alive()
    assert not warming.answered.is_set()
