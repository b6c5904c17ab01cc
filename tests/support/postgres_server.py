"""One real PostgreSQL server for the test session, and databases that no other test uses."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from sqlalchemy import create_engine, text

from forebay.embedded.layout import Layout
from forebay.embedded.postgres.place import Place, database_place, prepare_place, remove_database
from forebay.embedded.postgres.server import initdb_command, is_ready, server_command
from forebay.home.paths import Home

_START_SECONDS = 60.0
# What a killed process wrote is still in the system's memory: no test cuts the power. Otherwise a
# server that starts after a kill first syncs the files of every test's database.
_NO_POWER_CUTS = ("-c", "fsync=off")


@dataclass
class PostgresServer:
    programs: Path
    place: Place
    log: Path
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def start(self) -> None:
        self.process = self._run([*server_command(self.programs, self.place), *_NO_POWER_CUTS])
        deadline = time.monotonic() + _START_SECONDS
        while not is_ready(self.place, self.process.pid):
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            assert time.monotonic() < deadline, "PostgreSQL did not start"
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End it: SIGINT asks, SIGKILL kills it with all its processes."""
        assert self.process is not None
        if how == signal.SIGKILL:
            os.killpg(self.process.pid, how)
        else:
            self.process.send_signal(how)
        self.process.wait(30)
        self.process = None

    @contextmanager
    def suspended(self) -> Iterator[None]:
        self.suspend()
        try:
            yield
        finally:
            self.resume()

    def suspend(self) -> None:
        for process in self._processes():
            process.suspend()

    def resume(self) -> None:
        for process in self._processes():
            process.resume()

    def _processes(self) -> list[psutil.Process]:
        assert self.process is not None
        main = psutil.Process(self.process.pid)
        return [main, *main.children(recursive=True)]

    def new_database(self) -> str:
        name = f"test_{uuid.uuid4().hex[:12]}"
        admin = create_engine(f"postgresql+psycopg2{self.place.url}", isolation_level="AUTOCOMMIT")
        with admin.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        admin.dispose()
        return f"postgresql{self.place.url.replace('/postgres?', f'/{name}?')}"

    def initialise(self) -> None:
        assert self._run(initdb_command(self.programs, self.place)).wait(60) == 0

    def _run(self, command: list[str]) -> subprocess.Popen[bytes]:
        account = self.place.account
        who = {} if account is None else {"user": account.uid, "group": account.gid}
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                extra_groups=[] if who else None,
                **who,
            )


@contextmanager
def serving(folder: Path) -> Iterator[PostgresServer]:
    layout = Layout(Home(folder))
    layout.create()
    place = database_place(layout)
    server = PostgresServer(prepare_place(layout, place), place, folder / "server.log")
    server.initialise()
    try:
        server.start()
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        remove_database(place)


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """The session's server. A test that stops it starts it again."""
    folder = tmp_path_factory.mktemp("postgres")
    with serving(folder) as server:
        yield server
    shutil.rmtree(folder)


@pytest.fixture
def new_database(postgres_server: PostgresServer) -> Callable[[], str]:
    return postgres_server.new_database
