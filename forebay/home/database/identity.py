"""Which home a folder and a database belong to: both hold an id, and the ids must agree.

Otherwise a process without FOREBAY_DATABASE would silently start another home, with no window
planned and nothing trained.
"""

from __future__ import annotations

import uuid

from sqlalchemy import Connection, insert, inspect, select

from forebay.errors import ConfigError, InfrastructureError
from forebay.home.database import tables
from forebay.home.database.base import DATABASE_NAME, Kind
from forebay.home.database.tables import FORMAT
from forebay.home.paths import ENVIRONMENT_NAME, Home
from forebay.home.privacy import make_home
from forebay.system.files.durable import write_atomically
from forebay.system.instants import now_us
from forebay.system.message import Message

MARKER_NAME = "home.json"


class Marker(Message):
    """What a home's folder says about itself. database: where its facts are kept."""

    id: str
    format: str
    database: Kind


def read_marker(home: Home) -> Marker | None:
    """The marker in the folder; None if there is none.

    Raises:
        ConfigError: when another version of Forebay wrote it.
    """
    marker = Marker.of_file(home.root / MARKER_NAME)
    if marker is not None:
        _require_format(home, MARKER_NAME, marker.format)
    return marker


def require_new(home: Home) -> None:
    """Check that a folder without a marker and a database may become a home.

    Raises:
        ConfigError: when it has lost both: jobs would continue what another database planned.
    """
    folders = [each for each in (home.jobs, home.training) if each.is_dir()]
    state = [each.name for each in folders if any(each.iterdir())]
    # Read once more: whoever made the home meanwhile wrote the marker before any state.
    if state and Marker.of_file(home.root / MARKER_NAME) is None:
        raise ConfigError(
            f"{home.root} has lost its {MARKER_NAME} and its database, but holds "
            f"{' and '.join(state)}: restore it from a backup, correct {DATABASE_NAME}, or set "
            f"{ENVIRONMENT_NAME} to a new folder"
        )


def write_marker(home: Home, kind: Kind, home_id: str) -> None:
    """Record that the folder belongs to this database from now on."""
    marker = Marker(id=home_id, format=FORMAT, database=kind)
    make_home(home)
    write_atomically(home.root / MARKER_NAME, marker.model_dump_json() + "\n")


def stored_id(home: Home, connection: Connection) -> str | None:
    """The id in a database; None if it has none of our tables.

    Raises:
        ConfigError: when another version of Forebay wrote them.
    """
    schema = None if connection.dialect.name == "sqlite" else tables.SCHEMA
    if not inspect(connection).has_table(tables.home.name, schema=schema):
        return None
    found = connection.scalar(select(tables.version.c.version_num))
    _require_format(home, "its database", found or "unknown")
    return connection.scalar(select(tables.home.c.id))


def make_tables(connection: Connection) -> str:
    """Create the tables of a new home, and its id: the one migration that there is."""
    tables.METADATA.create_all(connection)
    home_id = uuid.uuid4().hex
    connection.execute(insert(tables.version).values(version_num=FORMAT))
    connection.execute(insert(tables.home).values(id=home_id, made_at=now_us()))
    return home_id


def require_same(home: Home, marker: Marker | None, kind: Kind, found: str | None) -> None:
    """Refuse a database that is not the one of this folder.

    kind: of the database that this process would use.
    found: the id in that database.

    Raises:
        ConfigError: when another database holds the home's facts.
        InfrastructureError: when its own database lost them.
    """
    if marker is None:
        return
    if marker.database != kind:
        used = "SQLite in the folder itself" if kind == "sqlite" else "a PostgreSQL server"
        remedy = (
            f"set {DATABASE_NAME} in the environment of this process"
            if kind == "sqlite"
            else f"unset {DATABASE_NAME}, or use another {ENVIRONMENT_NAME}"
        )
        raise ConfigError(
            f"{home.root} keeps its facts in {marker.database}, but this process would use "
            f"{used}: {remedy}"
        )
    if found is None:
        raise InfrastructureError(
            f"{home.root} has lost its database ({kind}, home {marker.id}): restore it from a "
            f"backup, or set {ENVIRONMENT_NAME} to a new folder and train again"
        )
    if found != marker.id:
        raise ConfigError(
            f"{home.root} is home {marker.id}, but the database is that of home {found}: correct "
            f"{DATABASE_NAME} or {ENVIRONMENT_NAME}"
        )


def _require_format(home: Home, where: str, found: str) -> None:
    if found != FORMAT:
        raise ConfigError(
            f"{home.root} has format {found} ({where}), but this version of Forebay needs format "
            f"{FORMAT}: use the version that wrote it, or set {ENVIRONMENT_NAME} (and "
            f"{DATABASE_NAME}, if you use it) to a new one"
        )
