"""`forebay home check|backup`: check that a home is complete, or copy it while jobs run."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from forebay.commands.shared.live_line import working
from forebay.commands.shared.output import Form, Output, OutputFormat
from forebay.errors import DataError, UsageError
from forebay.home.database.format import open_home
from forebay.home.database.identity import read_marker
from forebay.home.paths import ENVIRONMENT_NAME
from forebay.home.store.base import STORE_NAME

group = typer.Typer(help="Check the home, or copy it.", no_args_is_help=True)


@group.command()
def check(output: Form = OutputFormat.TEXT) -> None:
    """Check the database and every stored file.

    Rows that refer to others find them, each model begins with the rows that the one before had
    seen, and every byte in the store is read.

    May run at any time. Exits with 0 if everything is there and consistent, otherwise with 3.
    """
    from forebay.home.home_check import HomeCheck

    home = open_home()
    if read_marker(home) is None:
        raise UsageError(
            f"{home.root} is not a home yet: nothing to check (set FOREBAY_HOME to the "
            "folder that you mean)"
        )
    shown, looked = Output(output), HomeCheck(home)
    with working("reading all facts and every stored file"):
        faults = list(looked.faults())
    if shown.is_json:
        shown.json(
            {
                "rows": looked.rows,
                "read_bytes": looked.read_bytes,
                "faults": [fault._asdict() for fault in faults],
            }
        )
    else:
        for fault in faults:
            shown.line(str(fault))
        rows = ", ".join(f"{name} {count:,}" for name, count in sorted(looked.rows.items()))
        shown.line(f"rows: {rows}")
        shown.line(f"read from the store: {looked.read_bytes:,} bytes; faults: {len(faults):,}")
    if faults:
        raise typer.Exit(DataError.exit_code)


@group.command()
def backup(
    folder: Annotated[
        Path, typer.Argument(help="A new folder, or an empty one.", metavar="FOLDER")
    ],
    output: Form = OutputFormat.TEXT,
) -> None:
    """Copy this home to a folder, while jobs run.

    Files of the store are linked if the folder is on the same file system. If something is missing
    from this home, the rest is copied and the exit code is 3.
    """
    from forebay.home.backup import back_up

    home = open_home()
    with working(f"copying {home.root}"):
        done = back_up(home, folder.absolute())
    shown = Output(output)
    if shown.is_json:
        shown.json({"folder": folder.absolute(), **done._asdict()})
    else:
        for problem in done.lost:
            shown.line(f"not copied: {problem}")
        shown.line(f"{home.root} is copied to {folder.absolute()}")
        shown.line(_how_to_use(folder.absolute(), done.names, store_copied=done.store_copied))
    if done.lost:
        raise typer.Exit(DataError.exit_code)


def _how_to_use(folder: Path, names: int, *, store_copied: bool) -> str:
    copy = f"{ENVIRONMENT_NAME}={shlex.quote(str(folder))}"
    if store_copied:
        unset = f", and {STORE_NAME} not set" if os.environ.get(STORE_NAME) else ""
        return (
            f"its store has all {names:,} files that its database names: use it with {copy}{unset}"
        )
    return (
        f"the bucket with its {names:,} files is not copied: use the copy with {copy} "
        f"and the same {STORE_NAME}, and only instead of this home, since each of the two "
        "removes files that it does not name"
    )
