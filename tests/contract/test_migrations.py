"""The tables of a new home are those that Alembic's revisions make."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import produce_migrations, render_python_code
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, select, text

from forebay.home import migrations, tables
from forebay.home.database import close_databases, database_of
from forebay.home.identity import stored_id
from forebay.home.paths import Home

_SCRIPTS = str(Path(migrations.__file__).parent)
# Everything that a database knows about its tables, in its own words.
_SQLITE = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name"
_COLUMNS = """
    SELECT relname, relkind, attname, format_type(atttypid, atttypmod), attnotnull, attnum,
           attidentity, pg_get_expr(adbin, adrelid)
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
    WHERE relnamespace = 'forebay'::regnamespace AND attnum > 0 ORDER BY relname, attnum
"""
_CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'forebay'::regnamespace ORDER BY 1, 2
"""
_INDEXES = """
    SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'forebay'
    ORDER BY 1, 2
"""
_POSTGRESQL = (_COLUMNS, _CONSTRAINTS, _INDEXES)


@pytest.fixture(params=["sqlite", "postgresql"])
def new_engine(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[], Engine]:
    """Makes an engine of an empty database, which FOREBAY_DATABASE names from then on."""
    if request.param == "sqlite":
        monkeypatch.delenv("FOREBAY_DATABASE", raising=False)
        return lambda: sqlite_engine(tmp_path / "migrated.db")
    new_database: Callable[[], str] = request.getfixturevalue("new_database")

    def make() -> Engine:
        monkeypatch.setenv("FOREBAY_DATABASE", new_database())
        return engine_of_environment()

    return make


@pytest.fixture
def migrated(new_engine: Callable[[], Engine]) -> Iterator[Engine]:
    """A database that Alembic has made."""
    engine = new_engine()
    with engine.begin() as connection:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", _SCRIPTS)
        command.upgrade(config, "head")
    yield engine
    engine.dispose()


@pytest.fixture
def own(new_engine: Callable[[], Engine], tmp_path: Path) -> Iterator[Engine]:
    """A database that the first start of a home has made."""
    new_engine().dispose()
    home = Home(tmp_path / "home")
    database_of(home).prepare()
    close_databases()
    on_server = "FOREBAY_DATABASE" in os.environ
    engine = engine_of_environment() if on_server else sqlite_engine(home.root / "forebay.db")
    yield engine
    engine.dispose()


def sqlite_engine(path: Path) -> Engine:
    return create_engine(f"sqlite:///{path}")


def engine_of_environment() -> Engine:
    address = os.environ["FOREBAY_DATABASE"].replace("postgresql:", "postgresql+psycopg2:", 1)
    # Otherwise a user of the schema's name would have it as the one that needs no name.
    return create_engine(
        address,
        connect_args={"options": "-c search_path=public"},
        execution_options={"schema_translate_map": tables.IN_SCHEMA},
    )


def in_its_own_words(connection: Connection) -> list[list[Any]]:
    """What a database says about everything in it."""
    statements = (_SQLITE,) if connection.dialect.name == "sqlite" else _POSTGRESQL
    return [[tuple(row) for row in connection.execute(text(each))] for each in statements]


def test_the_newest_revision_is_the_one_that_a_home_asks_for() -> None:
    config = Config()
    config.set_main_option("script_location", _SCRIPTS)
    assert ScriptDirectory.from_config(config).get_heads() == [tables.REVISION]


def test_the_revisions_make_what_the_tables_say(migrated: Engine) -> None:
    options = {"version_table": tables.version.name}
    with migrated.connect() as connection:
        if connection.dialect.name == "postgresql":  # the comparison translates nothing
            connection.execute(text(f"SET search_path TO {tables.SCHEMA}"))
            connection.dialect.default_schema_name = tables.SCHEMA
        compared = MigrationContext.configure(connection, opts=options)
        missing = produce_migrations(compared, tables.METADATA).upgrade_ops
    migrated.dispose()
    assert missing is not None
    assert missing.is_empty(), "a revision has to do:\n" + render_python_code(missing)


def test_a_home_that_either_way_made_is_the_same(migrated: Engine, own: Engine) -> None:
    with migrated.connect() as one, own.connect() as other:
        made = in_its_own_words(one)
        assert all(made)
        assert made == in_its_own_words(other)
        revision = select(tables.version.c.version_num)
        assert [one.scalar(revision), other.scalar(revision)] == [tables.REVISION] * 2
        assert stored_id(one) is None, "its tables are accepted"
        assert stored_id(other) is not None
