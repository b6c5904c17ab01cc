"""`forebay gc`: remove from the store what no plan, link or listing names."""

from __future__ import annotations

from typing import Annotated

import typer

from forebay.commands.output import Form, Output, OutputFormat, option
from forebay.home.format import open_home


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("gc")(gc)


def gc(
    dry_run: Annotated[bool, option("--dry-run", help="Say what would go, and keep it.")] = False,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Remove from the store what nothing names, and what writers left that were killed.

    May run at any time, beside runs and jobs: what these store meanwhile is never removed.
    """
    from forebay.home.garbage import collect

    found = collect(open_home(), dry_run=dry_run)
    shown = Output(output)
    if shown.is_json:
        facts = {"dry_run": dry_run, "names": found.names, "leftovers": found.leftovers}
        shown.json(facts)
        return
    does = "would be removed" if dry_run else "removed"
    for name in (*found.names, *found.leftovers):
        shown.line(name)
    shown.line(
        f"{len(found.names)} unnamed {does} from the store, {len(found.leftovers)} left by writers "
        "that died"
    )
