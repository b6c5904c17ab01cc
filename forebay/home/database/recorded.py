"""Which pipelines and lines a home has records of, whatever the YAML files say now."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Executable, select, union

from forebay.home.database.open import database_of
from forebay.home.database.tables import METADATA, jobs, lines, plans, windows
from forebay.home.paths import Home


def recorded_pipelines(home: Home) -> set[str]:
    """Names of pipelines with rows in the database, or with windows in training on this host."""
    named = [table for table in METADATA.tables.values() if "pipeline" in table.c]
    return _recorded(home, union(*(select(table.c.pipeline) for table in named)), home.training)


def recorded_lines(home: Home, pipeline: str) -> set[str]:
    """Lines of a pipeline with plans, jobs or models, or with windows in training on this host."""
    planned = select(plans.c.line).join(windows).where(windows.c.pipeline == pipeline)
    named = (select(table.c.line).where(table.c.pipeline == pipeline) for table in (jobs, lines))
    return _recorded(home, union(planned, *named), home.lines(pipeline))


def _recorded(home: Home, names: Executable, folder: Path) -> set[str]:
    here = folder.iterdir() if folder.is_dir() else ()
    stored = database_of(home).read(lambda rows: set(rows.scalars(names)))
    return stored | {each.name for each in here if each.is_dir()}
