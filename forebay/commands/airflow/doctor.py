"""`forebay doctor`: whether Airflow can run on this machine, and what to do if not."""

from __future__ import annotations

import typer

from forebay.commands.shared.live_line import working
from forebay.commands.shared.output import Form, Output, OutputFormat
from forebay.errors import InfrastructureError
from forebay.home.paths import Home

COLUMNS = ("check", "state", "found", "remedy")


def doctor(output: Form = OutputFormat.TEXT) -> None:
    """Check whether this machine has what is needed.

    Exits with 4 if something is missing.
    """
    from forebay.embedded.checks import all_checks
    from forebay.embedded.layout import Layout

    with working("looking at this machine"):
        checks = all_checks(Layout(Home.from_environment()))
    rows = [
        {"check": one.name, "state": one.state, "found": one.found, "remedy": one.remedy or None}
        for one in checks
    ]
    Output(output).table(rows, COLUMNS)
    if any(one.state == "failure" for one in checks):
        raise typer.Exit(InfrastructureError.exit_code)
