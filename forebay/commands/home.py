"""`forebay home check|backup`: is everything of a home there, and a copy of it while jobs run."""

from __future__ import annotations

import typer

from forebay.commands.output import Form, Output, OutputFormat
from forebay.errors import DataError
from forebay.home.format import open_home


def register(app: typer.Typer) -> None:
    """Add the group of commands."""
    group = typer.Typer(help="The home: whole, and copied.", no_args_is_help=True)
    group.command("check")(check)
    app.add_typer(group, name="home")


def check(output: Form = OutputFormat.TEXT) -> None:
    """Compare rows with rows, and with every byte in the store.

    May run at any time. Exit 0 when all is there and agrees, 3 when something is not.
    """
    from forebay.home.home_check import HomeCheck

    shown, looked = Output(output), HomeCheck(open_home())
    faults = []
    for fault in looked.faults():
        faults.append(fault._asdict())
        if not shown.is_json:
            shown.line(str(fault))
    if shown.is_json:
        shown.json({"rows": looked.rows, "read_bytes": looked.read_bytes, "faults": faults})
    else:
        rows = ", ".join(f"{name} {count:,}" for name, count in sorted(looked.rows.items()))
        shown.line(f"rows: {rows}")
        shown.line(f"read from the store: {looked.read_bytes:,} bytes; faults: {len(faults):,}")
    if faults:
        raise typer.Exit(DataError.exit_code)
