"""The start of an embedded Airflow, step by step."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from forebay.embedded.airflow import components as parts
from forebay.embedded.airflow.http import Endpoint
from forebay.embedded.airflow.rest import AirflowApi
from forebay.embedded.airflow.settings import airflow_settings, render
from forebay.embedded.airflow.warm import Warming
from forebay.embedded.keeper.component_group import ComponentGroup
from forebay.embedded.layout import Layout
from forebay.embedded.postgres import server
from forebay.embedded.postgres.place import database_place, prepare_place
from forebay.embedded.secret_files import USER, load_secrets, read_password
from forebay.errors import InfrastructureError
from forebay.system.files.durable import write_private

INITDB_SECONDS = 120.0
DATABASE_SECONDS = 60.0
TABLES_SECONDS = 300.0
API_SECONDS = 180.0
HEALTHY_SECONDS = 120.0
_HEALTH_PAUSE_SECONDS = 0.5
_REQUEST_SECONDS = 10.0

_LOG = logging.getLogger(__name__)

Wait = Callable[[Callable[[], bool], float, str], None]


class Startup:
    """Starts components in order, the API server on `listening`.

    `wait` waits for a condition, for at most that many seconds, on behalf of a component, and does
    the caller's other work meanwhile.
    """

    def __init__(
        self, layout: Layout, components: ComponentGroup, listening: socket.socket, wait: Wait
    ) -> None:
        self._layout = layout
        self._components = components
        self._port: int = listening.getsockname()[1]
        self._wait = wait
        self._place = database_place(layout)
        self._airflow = parts.airflow_components(listening.fileno())

    def steps(self, url: str) -> dict[str, Callable[[], None]]:
        return {
            "settings": self._write_settings,
            "database": self._start_database,
            "tables": self._make_tables,
            "api server": lambda: self._start_api_server(url),
            "scheduler": lambda: self._start_scheduler(url),
        }

    def _write_settings(self) -> None:
        settings = airflow_settings(
            self._layout, port=self._port, database=self._place.url, keys=load_secrets(self._layout)
        )
        write_private(self._layout.settings, render(settings))

    def _start_database(self) -> None:
        programs = prepare_place(self._layout, self._place)
        if not server.is_initialised(self._place):
            server.empty_data(self._place)
            self._run_to_end(parts.initdb_component(programs, self._place), INITDB_SECONDS)
            server.mark_initialised(self._place)
        server.drop_stale_pid_file(self._place)
        database = self._components.start(parts.database_component(programs, self._place))

        def ready() -> bool:
            return database.pid is not None and server.is_ready(self._place, database.pid)

        self._wait(ready, DATABASE_SECONDS, parts.DATABASE)

    def _make_tables(self) -> None:
        """Create or migrate Airflow's tables if the last start was of another version."""
        installed = version("apache-airflow-core")
        if server.prepared_for(self._place) != installed:
            command = (*parts.AIRFLOW, "db", "migrate")
            self._run_to_end(parts.Component("migrate", command), TABLES_SECONDS)
            server.mark_prepared(self._place, installed)

    def _start_api_server(self, url: str) -> None:
        """Tasks need it, so nothing that starts tasks is started before it is warm."""
        self._components.start(self._airflow[parts.API_SERVER])
        self._components.start(self._airflow[parts.DAG_PROCESSOR])
        warming = Warming(url)
        try:
            self._wait(warming.answered.is_set, API_SECONDS, parts.API_SERVER)
        finally:
            warming.given_up.set()

    def _start_scheduler(self, url: str) -> None:
        self._components.start(self._airflow[parts.SCHEDULER])
        self._components.start(self._airflow[parts.TRIGGERER])
        api = AirflowApi(Endpoint(url, USER, read_password(self._layout)), _REQUEST_SECONDS)
        asked = 0.0

        def healthy() -> bool:
            nonlocal asked
            if time.monotonic() - asked < _HEALTH_PAUSE_SECONDS:
                return False
            asked = time.monotonic()
            try:
                health = api.health()
            except InfrastructureError as error:
                _LOG.info("no health report yet: %s", error)  # a busy machine: asked again
                return False
            return all(self._beats(health, name) for name in parts.REPORTED)

        self._wait(healthy, HEALTHY_SECONDS, parts.SCHEDULER)

    def _beats(self, health: dict[str, Any], name: str) -> bool:
        """Whether a component has reported since it was started; earlier reports do not count."""
        status = next(one for one in self._components.statuses() if one.name == name)
        beat = parts.last_beat(health, name)
        return beat is not None and status.started_at is not None and beat > status.started_at

    def _run_to_end(self, component: parts.Component, seconds: float) -> None:
        process = self._components.launch(component)
        try:
            self._wait(lambda: process.poll() is not None, seconds, component.name)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        if process.returncode != 0:
            what = f"failed with exit code {process.returncode}"
            raise self._components.failure(component.name, what)
