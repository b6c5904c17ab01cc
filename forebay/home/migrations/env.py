"""What Alembic calls: it migrates over the connection that its caller has opened.

The caller puts it in `config.attributes["connection"]`: the caller begins and ends the transaction,
and only the caller knows the address, which may contain a password.
"""

from __future__ import annotations

from alembic import context
from sqlalchemy.schema import CreateSchema

from forebay.home import tables

_connection = context.config.attributes["connection"]
# SQLite has no schemas.
_schema = None if _connection.dialect.name == "sqlite" else tables.SCHEMA
if _schema is not None:  # before the first revision: Alembic's own table is in it
    _connection.execute(CreateSchema(_schema, if_not_exists=True))
    _connection = _connection.execution_options(schema_translate_map=tables.IN_SCHEMA)
context.configure(
    connection=_connection,
    target_metadata=tables.METADATA,
    version_table=tables.version.name,
    version_table_schema=_schema,
)
context.run_migrations()
