"""Which pipelines a home has records of, whatever their YAML files say now."""

from __future__ import annotations

from sqlalchemy import Connection, select, union

from forebay.home.database import database_of
from forebay.home.paths import Home
from forebay.home.tables import METADATA


def recorded_pipelines(home: Home) -> set[str]:
    """Names of pipelines with rows in the database, or with windows in training on this host."""
    named = [table for table in METADATA.tables.values() if "pipeline" in table.c]
    names = union(*(select(table.c.pipeline) for table in named))

    def work(rows: Connection) -> set[str]:
        return set(rows.execute(names).scalars())

    here = home.training.iterdir() if home.training.is_dir() else ()
    return database_of(home).read(work) | {folder.name for folder in here if folder.is_dir()}
