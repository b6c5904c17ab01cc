"""Requests to Airflow's API server: login, deadlines, errors in the server's own words."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError
from urllib.request import OpenerDirector, ProxyHandler, Request, build_opener

from forebay.errors import InfrastructureError

_UNAUTHORISED = 401
_NOT_FOUND = 404
_CONFLICT = 409


@dataclass(frozen=True)
class Endpoint:
    """Where an Airflow listens and who may log in."""

    url: str
    user: str
    password: str = field(repr=False)


class ApiError(InfrastructureError):
    """Airflow refused a request."""

    def __init__(self, message: str, status: int) -> None:
        """`status` is the HTTP code."""
        super().__init__(message)
        self.status = status


class NotFoundError(ApiError):
    """Airflow has no such DAG, run or task."""


class ConflictError(ApiError):
    """What is asked for is there already, or in the way of something that runs."""


_ERRORS: dict[int, type[ApiError]] = {_NOT_FOUND: NotFoundError, _CONFLICT: ConflictError}


def direct_opener() -> OpenerDirector:
    """Opens addresses on this machine: never through a proxy of the environment."""
    return build_opener(ProxyHandler({}))


class HttpSession:
    """JSON requests with a token that is asked for when it is needed."""

    def __init__(self, endpoint: Endpoint, timeout_seconds: float) -> None:
        """Nothing is sent yet."""
        self._endpoint = endpoint
        self._timeout = timeout_seconds
        self._opener = direct_opener()
        self._token: str | None = None

    def get(self, path: str) -> dict[str, Any]:
        """Read; `path` stands below /api/v2."""
        return self._authorised("GET", path, None)

    def post(self, path: str, body: object) -> dict[str, Any]:
        """Make."""
        return self._authorised("POST", path, body)

    def patch(self, path: str, body: object) -> dict[str, Any]:
        """Change."""
        return self._authorised("PATCH", path, body)

    def _authorised(self, method: str, path: str, body: object) -> dict[str, Any]:
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
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = Request(  # noqa: S310 - the address is the embedded Airflow's, always http
            self._endpoint.url + path, data=data, headers=headers, method=method
        )
        try:
            with self._opener.open(request, timeout=self._timeout) as answer:
                content = answer.read()
        except HTTPError as error:
            with error:
                raise _refused(method, path, error) from error
        except (OSError, http.client.HTTPException) as error:
            raise InfrastructureError(
                f"Airflow at {self._endpoint.url} does not answer ({error}): see `forebay status`"
            ) from error
        return _object(content)


def _object(content: bytes) -> dict[str, Any]:
    value = json.loads(content) if content else {}
    if not isinstance(value, dict):
        raise InfrastructureError(f"Airflow answered {type(value).__name__} where an object is due")
    return value


def _refused(method: str, path: str, error: HTTPError) -> ApiError:
    text = error.read().decode(errors="replace")
    try:
        detail = json.loads(text).get("detail", text)
    except (ValueError, AttributeError):
        detail = text
    kind = _ERRORS.get(error.code, ApiError)
    said = detail if isinstance(detail, str) else json.dumps(detail)
    return kind(f"Airflow refused {method} {path} ({error.code}): {said}", error.code)
