"""PostgreSQL's commands, and what is recorded about a database."""

from __future__ import annotations

import shutil
from pathlib import Path

from forebay.embedded.postgres.place import DATABASE_USER, Place
from forebay.system.files.durable import write_atomically
from forebay.system.processes.identity import command_line

_READY_NAME = "ready"
_TABLES_NAME = "tables"
# In postmaster.pid: pid first, status last.
_STATUS_LINE = 7
# Ten times what eight tasks and five components use; each unused one costs some bytes.
_CONNECTIONS_MAX = 120
_SERVER_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": str(_CONNECTIONS_MAX),
    # Compiling costs more than Airflow's short queries.
    "jit": "off",
    # Three processes less; the data fits in memory.
    "io_method": "sync",
    # No replicas.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    # Otherwise it overwrites the environment by which its processes are found.
    "update_process_title": "off",
    "log_line_prefix": "%m [%p] ",
    "log_checkpoints": "off",
}


def initdb_command(programs: Path, place: Place) -> list[str]:
    return [
        str(programs / "bin" / "initdb"),
        *("--pgdata", str(place.data), "--username", DATABASE_USER),
        *("--auth-local", "trust", "--auth-host", "reject"),
        *("--encoding", "UTF8", "--no-locale", "--no-instructions"),
    ]


def server_command(programs: Path, place: Place) -> list[str]:
    settings = {**_SERVER_SETTINGS, "unix_socket_directories": str(place.socket)}
    given = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    return [str(programs / "bin" / "postgres"), "-D", str(place.data), *given]


def is_initialised(place: Place) -> bool:
    return (place.folder / _READY_NAME).is_file() and (place.data / "PG_VERSION").is_file()


def mark_initialised(place: Place) -> None:
    (place.folder / _READY_NAME).touch()


def prepared_for(place: Place) -> str | None:
    """The Airflow version whose tables the database has; None before the first."""
    path = place.folder / _TABLES_NAME
    return path.read_text() if path.is_file() else None


def mark_prepared(place: Place, version: str) -> None:
    write_atomically(place.folder / _TABLES_NAME, version)


def empty_data(place: Place) -> None:
    """Remove what an interrupted `initdb` left."""
    for path in place.data.iterdir() if place.data.exists() else ():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def _pid_file(place: Place) -> list[str]:
    try:
        text = (place.data / "postmaster.pid").read_text()
    except FileNotFoundError:  # A starting server removes the file of a killed one.
        text = ""
    return [line.strip() for line in text.split("\n")]


def drop_stale_pid_file(place: Place) -> None:
    """Remove the file of a killed server: its pid may belong to another program by now."""
    pid = _pid_file(place)[0]
    if not pid.isdigit() or str(place.data) not in command_line(int(pid)):
        (place.data / "postmaster.pid").unlink(missing_ok=True)


def is_ready(place: Place, pid: int) -> bool:
    """Whether the server with this pid accepts connections, according to its own file."""
    told = _pid_file(place)
    return len(told) > _STATUS_LINE and (told[0], told[_STATUS_LINE]) == (str(pid), "ready")
