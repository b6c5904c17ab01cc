"""Requests to Airflow's API server: login, deadlines, errors in the server's own words."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from forebay.errors import InfrastructureError

if TYPE_CHECKING:
    import httpx

_UNAUTHORISED = 401
# Compressing answers would cost the API server time that training on the same machine could use.
_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}


@dataclass(frozen=True)
class Endpoint:
    """Where an Airflow listens, and who may log in."""

    url: str
    user: str
    password: str = field(repr=False)


class ApiError(InfrastructureError):
    """Airflow refused a request. `status` is the HTTP code."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class NotFoundError(ApiError):
    """Airflow has no such DAG, run or task."""


class ConflictError(ApiError):
    """What was requested already exists, or conflicts with something that is running."""


_ERRORS: dict[int, type[ApiError]] = {404: NotFoundError, 409: ConflictError}


def send(
    method: str,
    server: str,
    path: str,
    timeout_seconds: float,
    body: object = None,
    token: str | None = None,
) -> httpx.Response:
    """Send one request to a server on this machine, never through a proxy of the environment.

    Every request has a connection of its own: a kept one would not outlive a restart of the server.

    The address of the server is always plain http; the timeout is for connecting and for each part
    of the answer; `body` is sent as JSON, None for none.

    Raises:
        InfrastructureError: when there is no answer.
    """
    import ssl

    import httpx

    try:
        return httpx.request(
            method,
            server + path,
            json=body,
            headers=_HEADERS | ({"Authorization": f"Bearer {token}"} if token else {}),
            timeout=timeout_seconds,
            follow_redirects=True,
            trust_env=False,
            # Trusts nobody: loading certificates would take longer than most requests.
            verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
        )
    except httpx.HTTPError as error:
        raise InfrastructureError(
            f"Airflow at {server} does not answer ({error}): see `forebay status`"
        ) from error


class HttpSession:
    """JSON requests with a token, which is requested when it is needed."""

    def __init__(self, endpoint: Endpoint, timeout_seconds: float) -> None:
        self._endpoint = endpoint
        self._timeout = timeout_seconds
        self._token: str | None = None

    def get(self, path: str) -> dict[str, Any]:
        """GET; `path` is below /api/v2."""
        return self._authorised("GET", path)

    def post(self, path: str, body: object) -> dict[str, Any]:
        return self._authorised("POST", path, body)

    def patch(self, path: str, body: object) -> dict[str, Any]:
        return self._authorised("PATCH", path, body)

    def _authorised(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        fresh = self._token is None
        if self._token is None:
            self._token = self._login()
        try:
            return self._send(method, f"/api/v2{path}", body)
        except ApiError as error:
            if error.status != _UNAUTHORISED or fresh:
                raise
        self._token = self._login()  # it had expired
        return self._send(method, f"/api/v2{path}", body)

    def _login(self) -> str:
        self._token = None
        who = {"username": self._endpoint.user, "password": self._endpoint.password}
        token: str = self._send("POST", "/auth/token", who)["access_token"]
        return token

    def _send(self, method: str, path: str, body: object) -> dict[str, Any]:
        answer = send(method, self._endpoint.url, path, self._timeout, body, self._token)
        if answer.is_error:
            raise _refused(method, path, answer)
        value = answer.json() if answer.content else {}
        if not isinstance(value, dict):
            what = type(value).__name__
            raise InfrastructureError(f"Airflow answered {what} instead of an object")
        return value


def _refused(method: str, path: str, answer: httpx.Response) -> ApiError:
    try:
        detail = answer.json().get("detail", answer.text)
    except (ValueError, AttributeError):
        detail = answer.text
    code = answer.status_code
    said = detail if isinstance(detail, str) else json.dumps(detail)
    return _ERRORS.get(code, ApiError)(f"Airflow refused {method} {path} ({code}): {said}", code)
