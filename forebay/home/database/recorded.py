"""Which pipelines and lines a home has records of, whatever the YAML files say now."""

from __future__ import annotations

from sqlalchemy import Connection, select, union

from forebay.home.database.open import database_of
from forebay.home.database.tables import METADATA, jobs, lines, plans, windows
from forebay.home.paths import Home


def recorded_pipelines(home: Home) -> set[str]:
    """Names of pipelines with rows in the database, or with windows in training on this host."""
    named = [table for table in METADATA.tables.values() if "pipeline" in table.c]
    names = union(*(select(table.c.pipeline) for table in named))

    def work(rows: Connection) -> set[str]:
        return set(rows.execute(names).scalars())

    here = home.training.iterdir() if home.training.is_dir() else ()
    return database_of(home).read(work) | {folder.name for folder in here if folder.is_dir()}


def recorded_lines(home: Home, pipeline: str) -> set[str]:
    """Lines of a pipeline with plans, jobs or models, or with windows in training on this host."""
    planned = select(plans.c.line).join(windows).where(windows.c.pipeline == pipeline)
    named = (select(table.c.line).where(table.c.pipeline == pipeline) for table in (jobs, lines))
    names = union(planned, *named)

    def work(rows: Connection) -> set[str]:
        return set(rows.execute(names).scalars())

    folder = home.lines(pipeline)
    here = folder.iterdir() if folder.is_dir() else ()
    return database_of(home).read(work) | {each.name for each in here if each.is_dir()}
