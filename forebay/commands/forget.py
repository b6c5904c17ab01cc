"""`forebay forget PIPELINE WINDOW`: let a line plan and train one window again."""

from __future__ import annotations

import typer

from forebay.commands import arguments
from forebay.commands.known_pipeline import require_known
from forebay.commands.output import Form, Output, OutputFormat
from forebay.errors import InfrastructureError, UsageError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("forget")(forget)


def forget(
    pipeline: arguments.PipelineName,
    window: arguments.WindowKey,
    config: arguments.ConfigDir = arguments.DEFAULT_CONFIG,
    line: arguments.LineName = arguments.DEFAULT_LINE,
    output: Form = OutputFormat.TEXT,
) -> None:
    """Forget the plan of a window, so that it runs again.

    The next run of the line plans and trains it again.

    Its models stay until they are replaced; then later windows become stale. Other lines keep their
    plans and models of the window.
    """
    from forebay.config.load import load_project
    from forebay.datatasks.ledger import Ledger
    from forebay.executors.job.stored_jobs import jobs_with_window
    from forebay.home.format import open_home

    spec = load_project(config).pipeline(pipeline)
    home = open_home()
    ledger = Ledger(home, spec.name, line)
    require_known(home, spec.name, config, line)
    active = [job for job in jobs_with_window(home, spec.name, window) if job.status.is_active]
    if active:
        raise InfrastructureError(
            f"job {active[0].job_id} is working on window {window}: wait until it ends, or end it "
            f"(`forebay cancel {spec.name} --line {active[0].row.line}`)"
        )
    if not ledger.forget(window):
        known = ", ".join(ledger.windows()[-5:]) or "none"
        raise UsageError(f"line {line!r} has no plan for {window!r} (its last windows: {known})")
    shown = Output(output)
    if shown.is_json:
        shown.json({"pipeline": spec.name, "line": line, "forgotten": window})
    else:
        shown.line(
            f"window {window} is forgotten on line {line!r}; its next run plans and trains it again"
        )
